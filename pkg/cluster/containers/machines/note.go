package machines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// A note is a text that the engine keeps for a cluster under a key. Every client of
// the engine can read it. Only a volume carries labels and nothing else,
// so a note is a volume; its labels cannot change, so a note that changes gets a
// new volume before the old one is removed. A reader, or a run that follows a
// killed one, therefore sees either the old text or the new one.
const (
	noteLabel    = "kube-bootstrap.dev/note"
	noteKeyLabel = "kube-bootstrap.dev/note-key"
	noteNoLabel  = "kube-bootstrap.dev/note-number" // the highest number of a key counts
)

// VolumeNotes are the notes of a cluster, each of which is a volume.
type VolumeNotes struct {
	cluster string
	volumes Volumes
}

// note is a volume that is a note.
type note struct {
	volume, key, text string
	number            int
}

// Set keeps a text under a key, and replaces an earlier one.
func (n VolumeNotes) Set(ctx context.Context, key, text string) error {
	old, err := n.find(ctx, key)
	if err != nil {
		return err
	}
	number := 1
	if len(old) > 0 {
		number = old[len(old)-1].number + 1
	}
	labels := map[string]string{noteLabel: text, noteKeyLabel: key, noteNoLabel: strconv.Itoa(number)}
	if err := n.volumes.Make(ctx, fmt.Sprintf("%s.note.%s.%d", n.cluster, key, number), labels); err != nil {
		return err
	}
	return n.remove(ctx, old)
}

// Forget removes a note. A missing note is no error.
func (n VolumeNotes) Forget(ctx context.Context, key string) error {
	old, err := n.find(ctx, key)
	return errors.Join(err, n.remove(ctx, old))
}

// All returns the notes of the cluster by their keys.
func (n VolumeNotes) All(ctx context.Context) (map[string]string, error) {
	all, err := n.find(ctx, "")
	texts := map[string]string{}
	for _, one := range all {
		texts[one.key] = one.text
	}
	return texts, err
}

// IsNote reports whether a volume exists for its labels alone.
func IsNote(v Volume) bool {
	_, is := v.Labels[noteLabel]
	return is
}

// find returns the notes with a key, or all for the key "", in the order of their numbers.
func (n VolumeNotes) find(ctx context.Context, key string) (all []note, err error) {
	volumes, err := n.volumes.List(ctx)
	for _, v := range volumes {
		if !IsNote(v) || key != "" && v.Labels[noteKeyLabel] != key {
			continue
		}
		number, _ := strconv.Atoi(v.Labels[noteNoLabel]) // we wrote it
		all = append(all, note{v.Name, v.Labels[noteKeyLabel], v.Labels[noteLabel], number})
	}
	slices.SortFunc(all, func(a, b note) int { return a.number - b.number })
	return all, err
}

// remove begins with the oldest: if it is killed, the latest text stays in force.
func (n VolumeNotes) remove(ctx context.Context, all []note) error {
	for _, one := range all {
		if err := n.volumes.Remove(ctx, one.volume); err != nil {
			return err
		}
	}
	return nil
}
