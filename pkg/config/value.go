package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// value reads and writes one setting as text.
type value struct {
	kind string // what usage calls it; "" is plain text
	set  func(string) error
	get  func() string
}

func text(field func(*Config) *string) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		return value{
			kind: "string",
			set:  func(s string) error { *p = strings.TrimSpace(s); return nil },
			get:  func() string { return *p },
		}
	}
}

func yesNo(field func(*Config) *bool) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		set := func(s string) error {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("must be true or false")
			}
			*p = b
			return nil
		}
		return value{kind: "bool", set: set, get: func() string { return strconv.FormatBool(*p) }}
	}
}

func number(field func(*Config) *int) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		set := func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("must be a whole number")
			}
			*p = n
			return nil
		}
		return value{kind: "int", set: set, get: func() string { return strconv.Itoa(*p) }}
	}
}

// span is a duration. The old scripts counted seconds, so a bare number does.
func span(field func(*Config) *time.Duration) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		set := func(s string) error {
			if _, err := strconv.Atoi(s); err == nil {
				s += "s"
			}
			d, err := time.ParseDuration(s)
			if err != nil || d <= 0 {
				return fmt.Errorf("must be a time greater than zero, such as 90s, 5m or 20 (seconds)")
			}
			*p = d
			return nil
		}
		return value{kind: "duration", set: set, get: func() string { return shortSpan(*p) }}
	}
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

// list splits at commas only. A space inside an item does not begin a new item;
// the item's check rejects it.
func list(field func(*Config) *[]string) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		set := func(s string) error {
			var items []string
			for item := range strings.SplitSeq(s, ",") {
				if item = strings.TrimSpace(item); item != "" {
					items = append(items, item)
				}
			}
			*p = slices.Compact(items)
			return nil
		}
		return value{kind: "list", set: set, get: func() string { return strings.Join(*p, ",") }}
	}
}

// mapping is a tree of fields of somebody else's, kept as JSON.
func mapping(field func(*Config) *string) func(*Config) value {
	return func(c *Config) value {
		p := field(c)
		set := func(s string) error {
			if strings.TrimSpace(s) == "" {
				*p = ""
				return nil
			}
			data, err := yaml.YAMLToJSONStrict([]byte(s))
			if err != nil || !strings.HasPrefix(string(data), "{") {
				return fmt.Errorf("must be fields with values, such as {maxPods: 50}")
			}
			*p = string(data)
			return nil
		}
		return value{kind: "mapping", set: set, get: func() string { return *p }}
	}
}
