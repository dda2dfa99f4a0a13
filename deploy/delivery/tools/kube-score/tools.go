//go:build tools

// Package tools lists kube-score, which reads kinds that Helm's version of k8s.io/api has no longer.
package tools

import (
	_ "github.com/zegl/kube-score/cmd/kube-score"
)
