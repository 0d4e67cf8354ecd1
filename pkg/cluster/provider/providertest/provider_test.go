package providertest

import (
	"testing"
)

func TestDirectoriesAreAProvider(t *testing.T) { Contract(t, New(t), "k") }
