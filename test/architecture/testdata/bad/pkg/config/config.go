// Package config is good.
package config

var X int
