//go:build !linux || !cgo

package worker

// gpuMemory is a little memory of a GPU, which a build without cgo cannot have.
func gpuMemory() (mem gpuRange, free func(), why string) {
	return nil, func() {}, "this busbw was built without cgo"
}
