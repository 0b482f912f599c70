package reduce

import "unsafe"

// copier moves bytes: a combination of one source is a copy.
var copier = For(Uint8, Sum)

// Copy copies n bytes. With stream the stores bypass the caches, which pays when
// dst is much larger than they are. dst must equal src or not overlap it.
func Copy(dst, src unsafe.Pointer, n int, stream bool) {
	if !stream {
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
		return
	}
	copier.run(&copier.partial, local(&dst), local(&src), 1, 1, n, 0, true)
}

// CopyAll copies n bytes from src to every dst and reads src once.
func CopyAll(dst []unsafe.Pointer, src unsafe.Pointer, n int, stream bool) {
	if len(dst) > 0 {
		copier.run(&copier.partial, local(&dst[0]), local(&src), len(dst), 1, n, 0, stream)
	}
}
