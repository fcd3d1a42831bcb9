// Package store remembers what must not be made twice: a value of at most [MaxValueBytes] under a key of 32 bytes. An
// empty value is a value like any other.
//
// The first writer wins. A value never changes while it stands, and whoever comes later is told what stands, so that all
// who ask for a key go on with the same bytes. An entry goes when it was not read for the time to live (TTL), or when
// there is no room: the entry that was not used for longest goes first.
//
// There are three backends. [Memory] is for one process, [File] survives a restart, and [Redis] is shared by replicas.
// [Tiered] puts a Memory in front of one of the others, and is what to use where no failure of a backend may matter.
//
// All are safe for concurrent use. Returned values are shared and must not be changed. No error holds a value, a password
// or a URL.
package store
