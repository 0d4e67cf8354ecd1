package backup

import (
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
)

// PublicKeys returns the public keys of age that texts name: each is a key, or a file with keys.
func PublicKeys(texts []string) (keys []string, err error) {
	for _, text := range texts {
		lines := text
		if !strings.HasPrefix(text, "age1") {
			data, err := os.ReadFile(text)
			if err != nil {
				return nil, err
			}
			lines = string(data)
		}
		all, err := age.ParseRecipients(strings.NewReader(lines))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		for _, one := range all {
			keys = append(keys, fmt.Sprint(one))
		}
	}
	return keys, nil
}

// Recipients returns the recipients with the public keys that PublicKeys returns.
func Recipients(texts []string) ([]age.Recipient, error) {
	keys, err := PublicKeys(texts)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return age.ParseRecipients(strings.NewReader(strings.Join(keys, "\n")))
}

// Identities returns the identities of age in a file, or none if path is empty.
func Identities(path string) ([]age.Identity, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := age.ParseIdentities(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// witness is a recipient that keeps the key of the file, with which it is an identity too. The program that writes a
// backup has no other identity to read it again.
type witness struct {
	age.Recipient
	fileKey []byte
}

// witnessed replaces the first recipient by a witness. The witness is also returned as the identity that decrypts
// what is encrypted for the recipients. witnessed returns nil if the backup is not encrypted.
func witnessed(recipients []age.Recipient) ([]age.Recipient, []age.Identity) {
	if len(recipients) == 0 {
		return nil, nil
	}
	first := &witness{Recipient: recipients[0]}
	return append([]age.Recipient{first}, recipients[1:]...), []age.Identity{first}
}

// WrapWithLabels implements age.RecipientWithLabels, because a recipient may have labels.
func (w *witness) WrapWithLabels(fileKey []byte) (stanzas []*age.Stanza, labels []string, err error) {
	w.fileKey = append([]byte{}, fileKey...)
	if labeled, ok := w.Recipient.(age.RecipientWithLabels); ok {
		return labeled.WrapWithLabels(fileKey)
	}
	stanzas, err = w.Wrap(fileKey)
	return stanzas, nil, err
}

// Unwrap implements age.Identity.
func (w *witness) Unwrap([]*age.Stanza) ([]byte, error) { return w.fileKey, nil }
