//go:build !race

package collectives

// publish stores n behind all stores that came before, which is what every
// store does here (Intel SDM 3A, 9.2.2). Non-temporal stores are fenced where
// they are made.
//
//go:noescape
func publish(at *uint64, n uint64)
