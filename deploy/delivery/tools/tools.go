//go:build tools

// Package tools lists the programs that install and judge the chart, so that one go.mod and one go.sum pin them.
package tools

import (
	_ "github.com/yannh/kubeconform/cmd/kubeconform"
	_ "helm.sh/helm/v4/cmd/helm"
)
