//go:build !amd64 && !arm64

package reduce

// variants is empty: there are only the portable kernels.
func variants() []variant { return nil }
