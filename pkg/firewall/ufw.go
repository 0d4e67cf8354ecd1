package firewall

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	ufwConf  = "/etc/ufw/ufw.conf"
	ufwRules = "/etc/ufw/user.rules"
	ufwLock  = "/run/ufw.lock"
	ufwInit  = "/lib/ufw/ufw-init"
)

// ufwRule is a rule in the arguments of ufw(8): "route", "allow", "from", "10.1.0.0/16".
type ufwRule []string

// ufwRules returns one rule per protocol, not an application profile: `ufw app update` does not
// change the running firewall if it is called in a session of SSH.
func (a Access) ufwRules() (rules []ufwRule) {
	numbers := map[string][]string{}
	for _, p := range sorted(a.Ports) {
		numbers[p.Protocol] = append(numbers[p.Protocol], fmt.Sprint(p.Number))
	}
	for _, protocol := range slices.Sorted(maps.Keys(numbers)) {
		rules = append(rules, portRule(protocol, strings.Join(numbers[protocol], ",")))
	}
	pods := a.Pods.String()
	return append(rules, ufwRule{"allow", "from", pods}, ufwRule{"route", "allow", "from", pods},
		ufwRule{"route", "allow", "to", pods})
}

func portRule(protocol, ports string) ufwRule {
	return ufwRule{"allow", "proto", protocol, "to", "any", "port", ports}
}

// delete returns the arguments that delete the rule.
func (r ufwRule) delete() []string {
	if r[0] == "route" {
		return append([]string{"route", "delete"}, r[1:]...)
	}
	return append([]string{"delete"}, r...)
}

// savedRule is a rule of user.rules. It is ours if it has our comment.
type savedRule struct {
	rule ufwRule
	ours bool
}

// parseRules reads the lines in which ufw keeps its rules for itself:
//
//	### tuple ### allow udp 7947,8472 0.0.0.0/0 any 0.0.0.0/0 in comment=6b75
//	### tuple ### route:allow any any 10.1.0.0/16 any 0.0.0.0/0 in comment=6b75
//
// The fields are action, protocol, port, destination, source port, source. It skips rules
// of other kinds.
func parseRules(text string) (all []savedRule) {
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.TrimPrefix(line, "### tuple ### "))
		if !strings.HasPrefix(line, "### tuple ### ") || len(words) < 7 {
			continue
		}
		if rule := ruleOf(words); rule != nil {
			all = append(all, savedRule{rule, slices.Contains(words, "comment="+hex.EncodeToString([]byte(name)))})
		}
	}
	return all
}

func ruleOf(words []string) ufwRule {
	const anywhere = "0.0.0.0/0"
	action, isRoute := strings.CutPrefix(words[0], "route:")
	var prefix ufwRule
	if isRoute {
		prefix = ufwRule{"route"}
	}
	protocol, port, to, fromPort, from := words[1], words[2], words[3], words[4], words[5]
	switch {
	case action != "allow" || fromPort != "any" || words[6] != "in":
		return nil
	case protocol != "any" && port != "any" && to == anywhere && from == anywhere && !isRoute:
		return portRule(protocol, port)
	case protocol != "any" || port != "any":
		return nil
	case to == anywhere:
		return append(prefix, "allow", "from", from)
	case from == anywhere:
		return append(prefix, "allow", "to", to)
	}
	return nil
}

// ufwActive reports whether ufw filters packets. One that is enabled and was not started, or whose
// rules and policies were removed, drops nothing, and its user has to start it.
func (a Access) ufwActive() (bool, error) {
	conf, err := a.Files.Read(ufwConf)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !isSet(string(conf), "ENABLED", "yes") {
		return false, err
	}
	chains, err := netfilter.ReadChains()
	if err != nil {
		return false, err
	}
	policy, err := chains.Policy("filter", "INPUT")
	if err != nil || policy == "DROP" {
		return err == nil, err
	}
	missing, err := chains.Missing(ufwJump)
	return err == nil && len(missing) == 0, err
}

func (a Access) savedRules() ([]savedRule, error) {
	text, err := a.Files.Read(ufwRules)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return parseRules(string(text)), err
}

func (a Access) ufwDiff() (diff step.Diff, err error) {
	if active, err := a.ufwActive(); err != nil || !active {
		return nil, err
	}
	changes, err := a.ufwChanges()
	for _, args := range changes {
		diff = append(diff, "run ufw "+strings.Join(args, " "))
	}
	if err != nil || len(diff) > 0 {
		return diff, err
	}
	return a.ufwFlushed()
}

// ufwChanges returns the commands that add missing rules, and delete rules of kube-bootstrap that it
// no longer needs.
func (a Access) ufwChanges() (changes []ufwRule, err error) {
	saved, err := a.savedRules()
	wanted := a.ufwRules()
	for _, r := range wanted {
		if !slices.ContainsFunc(saved, func(s savedRule) bool { return slices.Equal(s.rule, r) }) {
			changes = append(changes, append(slices.Clone(r), "comment", name))
		}
	}
	for _, s := range saved {
		if s.ours && !slices.ContainsFunc(wanted, func(r ufwRule) bool { return slices.Equal(s.rule, r) }) {
			changes = append(changes, s.rule.delete())
		}
	}
	return changes, err
}

// ufwJump is the first rule of ufw.
var ufwJump = netfilter.Jump{Table: "filter", From: "INPUT", To: "ufw-before-input"}

// ufwFlushed finds an active ufw without its chains, or without a rule in them. Its policies remain
// and drop all packets.
func (a Access) ufwFlushed() (step.Diff, error) {
	chains, err := netfilter.ReadChains()
	if err != nil {
		return nil, err
	}
	missing, err := chains.Missing(ufwJump)
	if err != nil {
		return nil, err
	}
	rule := "-A ufw-user-input -s " + a.Pods.String() + " -j ACCEPT"
	rules, err := chains.Rules("filter", "ufw-user-input")
	if err == nil && !slices.Contains(rules, rule) {
		missing = append(missing, rule)
	}
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return step.Diff{"start ufw again, which lacks " + strings.Join(missing, ", ")}, nil
}

func (a Access) applyUFW(ctx context.Context) error {
	active, err := a.ufwActive()
	if err != nil || !active {
		return err
	}
	changes, err := a.ufwChanges()
	if err != nil {
		return err
	}
	if err := host.Each(changes, func(args ufwRule) error { return runUFW(ctx, args) }); err != nil {
		return err
	}
	return a.fillFlushed(ctx)
}

// fillFlushed starts a ufw without its chains. A ufw that reloads has none either, so this takes the
// lock of its commands, and looks once more later, because its unit takes no lock. `ufw reload` does
// not add its jumps again, and leaves ufw disabled if it is interrupted. `ufw-init start`, which its
// unit calls, adds the jumps together with the chains, so all chains are deleted first.
func (a Access) fillFlushed(ctx context.Context) error {
	const moment = 2 * time.Second // a start of ufw takes less than one
	if flushed, err := a.ufwFlushed(); err != nil || len(flushed) == 0 {
		return err
	}
	return host.WithRecordLock(ctx, a.Files.Path(ufwLock), func() error {
		if err := step.Pause(ctx, moment); err != nil {
			return err
		}
		active, err := a.ufwActive()
		if err != nil || !active {
			return err
		}
		if flushed, err := a.ufwFlushed(); err != nil || len(flushed) == 0 {
			return err
		}
		deletes := func(prefix string) error { return netfilter.DeleteChainsEverywhere(ctx, prefix) }
		if err := host.Each([]string{"ufw-", "ufw6-"}, deletes); err != nil {
			return err
		}
		_, err = host.Run(ctx, ufwInit, "start")
		return err
	})
}

func runUFW(ctx context.Context, args []string) error {
	_, err := host.Run(ctx, append([]string{"ufw"}, args...)...)
	return err
}

// undoUFW deletes the rules with our comment, also from a ufw that is disabled.
func (a Access) undoUFW(ctx context.Context) error {
	saved, err := a.savedRules()
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(saved, func(s savedRule) bool { return !s.ours })
	if len(ours) > 0 && !host.HasProgram("ufw") {
		step.Leave(ctx, ufwRules+": rules with the comment "+name+
			", because ufw is no longer installed; delete its configuration with the package, or these rules")
		return nil
	}
	return host.Each(ours, func(s savedRule) error { return runUFW(ctx, s.rule.delete()) })
}
