// Package nvml asks the NVIDIA driver's management library, loaded at run
// time, what it knows of the GPUs of this machine. What the library, the
// driver or a GPU does not tell is named as absent, never 0.
package nvml

import "errors"

// What Open cannot get past. Each is a different thing to do.
var (
	// ErrNoLibrary: libnvidia-ml.so.1 is not here. A machine without NVIDIA GPUs has none.
	ErrNoLibrary = errors.New("libnvidia-ml.so.1 is not installed: there is no NVIDIA driver on this machine, or this container was not given it (--gpus, NVIDIA_VISIBLE_DEVICES)")
	// ErrNoDriver: the library is here and the kernel module is not.
	ErrNoDriver = errors.New("the nvidia kernel module is not loaded, or its device files are not in this container")
	// ErrMismatch: library and kernel module are of different versions.
	ErrMismatch = errors.New("the NVIDIA library and the loaded kernel module are of different versions: reload the module or reboot after the driver's update")
	// ErrNoCgo: this program cannot load the library.
	ErrNoCgo = errors.New("this busbw was built without cgo and cannot ask the NVIDIA driver")
)
