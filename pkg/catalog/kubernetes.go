package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var kubernetesForm = regexp.MustCompile(`^v?1\.(\d{1,3})(\.\d{1,3}(-[0-9A-Za-z.-]+)?)?$`)

// Kubernetes resolves a version to a release and its row of the catalog:
// "v1.36.3" and "1.36.3" name that release, "1.36" the newest patch of the
// minor version, "" and "stable" the default.
func Kubernetes(text string) (release string, m Minor, err error) {
	if text == "" || text == "stable" {
		return Newest().Patch, Newest(), nil
	}
	form := kubernetesForm.FindStringSubmatch(text)
	if form == nil {
		return "", m, wanted("must be")
	}
	number, _ := strconv.Atoi(form[1]) // three digits at most
	m, known := Find(number)
	switch {
	case !known:
		return "", m, wanted("must be")
	case form[3] != "":
		return "", m, wanted("is a pre-release, which is neither published nor built here; use")
	case form[2] == "":
		return m.Patch, m, nil
	}
	return "v" + strings.TrimPrefix(text, "v"), m, nil
}

// wanted returns an error that states the accepted forms and the supported
// range of a Kubernetes version.
func wanted(verb string) error {
	return fmt.Errorf("%s a release of Kubernetes %s, such as %s, or a minor version for its newest patch, such as %s",
		verb, Supported(), Newest().Patch, Newest())
}
