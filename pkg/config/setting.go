package config

// hidden stands for a secret.
const hidden = "(hidden)"

// Find returns the setting with a name in the file.
func Find(field string) (Setting, bool) {
	for _, s := range settings {
		if s.Field == field {
			return s, true
		}
	}
	return Setting{}, false
}

// Kind returns what kind of value a setting has: "string", "bool", "int",
// "duration", "list", "mapping", "arguments" or "gates".
func (s Setting) Kind() string { return s.at(&Config{}).kind }

// Get returns the value of a setting as text.
func (s Setting) Get(c Config) string { return s.at(&c).get() }

// Set changes the value of a setting. The error says what the text must be.
func (s Setting) Set(c *Config, raw string) error { return s.at(c).set(raw) }

// Must says what a value must be, or nothing if it is.
func (s Setting) Must(raw string) string {
	if s.check == nil || raw == "" {
		return ""
	}
	return s.check(raw)
}

// Masked returns what may be printed of a value: a word stands for a secret.
func (s Setting) Masked(raw string) string {
	switch {
	case s.Secret:
		return hidden
	case s.shown != nil:
		return s.shown(raw)
	}
	return raw
}
