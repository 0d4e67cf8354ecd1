// Command sbom prints the software bill of materials of a Go program, as SPDX
// 2.3 in JSON: the module of the program, and all modules that are linked into
// it, as the program itself states them.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/packaging/epoch"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(path, version string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(documentOf(info, filepath.Base(path), version, hex.EncodeToString(sum[:]), epoch.Made()))
}

type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Download  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	License   string     `json:"licenseDeclared"`
	Checksums []checksum `json:"checksums,omitempty"`
	Refs      []ref      `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type ref struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Of      string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

func documentOf(info *debug.BuildInfo, name, version, sum string, at time.Time) document {
	const root = "SPDXRef-DOCUMENT"
	program := packageOf(info.Main.Path, version)
	program.License, program.Checksums = "Apache-2.0", []checksum{{"SHA256", sum}}
	all := []spdxPackage{program, packageOf("stdlib", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, packageOf(m.Path, m.Version))
	}
	relations := []relationship{{root, "DESCRIBES", program.ID}}
	for _, one := range all[1:] {
		relations = append(relations, relationship{program.ID, "DEPENDS_ON", one.ID})
	}
	return document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: root, Name: name,
		Namespace: "https://" + info.Main.Path + "/spdx/" + name + "-" + sum,
		Creation:  creation{at.UTC().Format(time.RFC3339), []string{"Tool: kube-bootstrap-sbom"}}, Packages: all,
		Relationships: relations,
	}
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func packageOf(path, version string) spdxPackage {
	return spdxPackage{
		ID: "SPDXRef-" + unfit.ReplaceAllString(path, "-"), Name: path, Version: version, Download: "NOASSERTION",
		License: "NOASSERTION",
		Refs:    []ref{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
