package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
)

// value reads and writes one setting as text.
type value struct {
	kind string // what usage calls it; "" is plain text
	set  func(string) error
	get  func() string

	field any // pointer to the field of Config
}

// kind returns a function that returns the value at a field of Config. A text that parse does not accept leaves
// the field as it is.
func kind[T any](name string, parse func(string) (T, error), print func(T) string) func(field any) value {
	return func(field any) value {
		p := field.(*T)
		set := func(s string) error {
			v, err := parse(s)
			if err == nil {
				*p = v
			}
			return err
		}
		return value{kind: name, set: set, get: func() string { return print(*p) }, field: field}
	}
}

// kinds are the kinds of settings by the types of their fields.
var kinds = map[reflect.Type]func(field any) value{
	reflect.TypeFor[string]():        kind("string", trimmed, asItIs),
	reflect.TypeFor[bool]():          kind("bool", or(strconv.ParseBool, "must be true or false"), strconv.FormatBool),
	reflect.TypeFor[int]():           kind("int", or(strconv.Atoi, "must be a whole number"), strconv.Itoa),
	reflect.TypeFor[time.Duration](): kind("duration", parseSpan, shortSpan),
	reflect.TypeFor[[]string]():      listOf(func(s string) (string, error) { return s, nil }, asItIs),

	reflect.TypeFor[netip.Addr]():        kind("string", parseAddress, addresses.Text),
	reflect.TypeFor[Networks]():          kind("string", parseNetworks, Networks.String),
	reflect.TypeFor[[]netip.Prefix]():    listOf(parseNetwork, netip.Prefix.String),
	reflect.TypeFor[[]addresses.Range](): listOf(addresses.Parse, addresses.Range.Text),
	reflect.TypeFor[[]mirror.Mirror]():   kind("list", mirror.ParseList, Joined[mirror.Mirror]),
	reflect.TypeFor[[]Label]():           listOf(parseLabel, Label.String),
	reflect.TypeFor[[]Taint]():           listOf(parseTaint, Taint.String),
	reflect.TypeFor[[]PublishedPort]():   listOf(ParsePort, PublishedPort.String),
	reflect.TypeFor[[]NodeMount]():       listOf(ParseMount, NodeMount.String),

	// Arguments are a mapping in a file, and NAME=VALUE as a flag, which may be repeated. A mapping on one line
	// is accepted everywhere.
	reflect.TypeFor[Arguments](): kind("arguments", parseLines, asJSON[Arguments]),
	// Gates are arguments that are true or false, and that commas may separate.
	reflect.TypeFor[map[string]bool](): kind("gates", parseGates, asJSON[map[string]bool]),
}

// The kinds of settings that the types of their fields do not determine.
var (
	// mapping is the configuration of another component, stored as JSON.
	mapping = kind("mapping", parseMapping, asItIs)
	// manifest is a name, a URL or the path of a manifest; manifests is a list of these.
	manifest  = kind("string", func(s string) (string, error) { return settled(strings.TrimSpace(s)) }, asItIs)
	manifests = kind("list", parseManifests, func(names []string) string { return list(names, asItIs) })
	// cpus and amount are quantities that pods or images may use.
	cpus   = quantity("100m", "must be a number of processors of at least 0.1, such as 2 or 1.5")
	amount = quantity("1Mi", "must be an amount, such as 2Gi or 500Mi")
)

// places are the indices of the fields of Config by the names of the settings.
var places = sync.OnceValue(func() map[string][]int {
	all := map[string][]int{}
	for _, s := range settings {
		in := reflect.TypeFor[Config]()
		for name := range strings.SplitSeq(s.Field, ".") {
			f, _ := in.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
			all[s.Field], in = append(all[s.Field], f.Index...), f.Type
		}
	}
	return all
})

// in returns the field of c that holds a setting.
func (s Setting) in(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(places()[s.Field])
}

// at returns the value of a setting in c.
func (s Setting) at(c *Config) value {
	field, as := s.in(c), s.as
	if as == nil {
		as = kinds[field.Type()]
	}
	return as(field.Addr().Interface())
}

func asItIs(s string) string { return s }

func trimmed(s string) (string, error) { return strings.TrimSpace(s), nil }

// or returns parse with an error that says what the text must be.
func or[T any](parse func(string) (T, error), must string) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if err != nil {
			err = errors.New(must)
		}
		return v, err
	}
}

// parseSpan reads a duration; a bare number is seconds, as in the old scripts.
func parseSpan(s string) (time.Duration, error) {
	if _, err := strconv.Atoi(s); err == nil {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("must be a time greater than zero, such as 90s, 5m or 20 (seconds)")
	}
	return d, nil
}

// shortSpan drops the zeros Go prints: 5m instead of 5m0s.
func shortSpan(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// quantity returns the kind of quantities of at least this value. A Quantity remembers its text, so each is
// read from its usual text: equal amounts are equal values.
func quantity(least, must string) func(field any) value {
	minimum := resource.MustParse(least)
	parse := func(s string) (resource.Quantity, error) {
		if s = strings.TrimSpace(s); s == "" {
			return resource.Quantity{}, nil
		}
		q, err := resource.ParseQuantity(s)
		if err != nil || q.Cmp(minimum) < 0 {
			return resource.Quantity{}, errors.New(must)
		}
		return resource.ParseQuantity(q.String())
	}
	return kind("string", parse, quantityText)
}

func quantityText(q resource.Quantity) string {
	if q.IsZero() {
		return ""
	}
	return q.String()
}

// parseURL reads a URL; the empty text is none.
func parseURL(s string) (url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return url.URL{}, err
	}
	return *u, nil
}

func urlText(u url.URL) string { return u.String() }

// splitList splits at commas only. A space inside an item does not begin a new item; the item's check rejects
// it.
func splitList(s string) []string {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return slices.Compact(items)
}

// listOf returns a kind like kind does, for lists of values that commas separate.
func listOf[T any](parse func(string) (T, error), print func(T) string) func(field any) value {
	return kind("list", func(s string) (all []T, err error) {
		for _, item := range splitList(s) {
			one, err := parse(item)
			if err != nil {
				return nil, fmt.Errorf("%q %w", item, err)
			}
			all = append(all, one)
		}
		return all, nil
	}, func(all []T) string { return list(all, print) })
}

// Joined returns the text of a list.
func Joined[T fmt.Stringer](all []T) string { return list(all, T.String) }

func list[T any](all []T, print func(T) string) string {
	var words []string
	for _, one := range all {
		words = append(words, print(one))
	}
	return strings.Join(words, ",")
}

func parseMapping(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", nil
	}
	data, err := yaml.YAMLToJSONStrict([]byte(s))
	if err != nil || !strings.HasPrefix(string(data), "{") {
		return "", fmt.Errorf("must be fields with values, such as {maxPods: 50}")
	}
	return string(data), nil
}

// settled makes the path of a manifest absolute, because a host remembers it.
func settled(name string) (string, error) {
	if !extension.IsPath(name) {
		return name, nil
	}
	return filepath.Abs(name)
}

func parseManifests(s string) ([]string, error) {
	if strings.TrimSpace(s) == extension.NoAddons {
		return nil, nil
	}
	items := splitList(s)
	for i, name := range items {
		var err error
		if items[i], err = settled(name); err != nil {
			return nil, err
		}
	}
	return items, nil
}
