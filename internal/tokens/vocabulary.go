package tokens

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
)

// absent is the rank of bytes that are not a token. It is higher than any other.
const absent = math.MaxUint32

// A slot of the hash table holds a key and, in its lower bits, a rank. A key of up to longestKey bytes is the token.
const (
	rankBits   = 18
	longestKey = 5
)

// vocabulary knows the tokens of an encoding and their ranks, in a hash table with open addressing. It does not change.
//
// A count depends only on the order of the ranks. So a rank is the place of a token in this order, and the gaps between
// the published numbers are closed.
type vocabulary struct {
	slots   []uint64 // a power of two, at most half of them in use; 0 is an empty one
	shift   int      // how many of the 64 bits of a hash are not needed to number the slots
	pairs   []uint32 // the rank of every two bytes
	text    []byte   // the tokens, one after another in the order of their ranks
	offsets []uint32 // where each token starts in text, and where the last one ends
	longest int      // length in bytes of the longest token
}

// readVocabulary reads lines of a token in base64, a space and its rank. Ranks must rise. The size is that of all lines in
// bytes, or a guess.
func readVocabulary(r io.Reader, size int) (*vocabulary, error) {
	// A line has about 18 bytes, of which 7 are the token.
	text, offsets := make([]byte, 0, size/2), make([]uint32, 0, size/16)
	previous := int64(-1)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		encoded, number, _ := bytes.Cut(lines.Bytes(), []byte{' '})
		rank, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil {
			return nil, err
		}
		if int64(rank) <= previous {
			return nil, fmt.Errorf("rank %d comes after rank %d", rank, previous)
		}
		previous = int64(rank)
		start := len(text)
		if text, err = base64.StdEncoding.AppendDecode(text, encoded); err != nil {
			return nil, err
		}
		if len(text) == start {
			return nil, errors.New("a token without bytes")
		}
		offsets = append(offsets, uint32(start))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(offsets) >= 1<<rankBits {
		return nil, fmt.Errorf("%d tokens are too many", len(offsets))
	}
	return newVocabulary(text, append(offsets, uint32(len(text)))), nil
}

// newVocabulary builds the tables for the tokens at the given offsets of a text, the last of which is its end.
func newVocabulary(text []byte, offsets []uint32) *vocabulary {
	size := bits.Len(uint(2 * len(offsets)))
	v := &vocabulary{
		slots: make([]uint64, 1<<size), shift: 64 - size, pairs: make([]uint32, 1<<16), text: text, offsets: offsets,
	}
	for i := range v.pairs {
		v.pairs[i] = absent
	}
	for rank := range uint32(len(offsets) - 1) {
		token := string(v.token(rank))
		v.longest = max(v.longest, len(token))
		if len(token) == 2 {
			v.pairs[int(token[0])<<8|int(token[1])] = rank
		}
		key := tokenKey(token)
		i := v.home(key)
		for v.slots[i] != 0 {
			i = v.next(i)
		}
		v.slots[i] = key<<rankBits | uint64(rank)
	}
	return v
}

// rank returns the rank of a token, or absent. The token is not empty.
func (v *vocabulary) rank(token string) uint32 {
	if len(token) > v.longest {
		return absent
	}
	key := tokenKey(token)
	for i := v.home(key); ; i = v.next(i) {
		slot := v.slots[i]
		if slot == 0 {
			return absent
		}
		if slot>>rankBits != key {
			continue
		}
		if rank := uint32(slot % (1 << rankBits)); len(token) <= longestKey || string(v.token(rank)) == token {
			return rank
		}
	}
}

// pair returns the rank of a token of two bytes, or absent. Merging a text begins with asking for all its pairs.
func (v *vocabulary) pair(first, second byte) uint32 {
	return v.pairs[int(first)<<8|int(second)]
}

// token returns the bytes of the token with a rank.
func (v *vocabulary) token(rank uint32) []byte {
	return v.text[v.offsets[rank]:v.offsets[rank+1]]
}

// home returns the slot where the search for a key begins. The factor is 2^64 divided by the golden ratio: Fibonacci
// hashing, see Knuth, The Art of Computer Programming, volume 3, section 6.4.
func (v *vocabulary) home(key uint64) uint64 {
	return key * 0x9e3779b97f4a7c15 >> v.shift
}

// next returns the slot to try after another.
func (v *vocabulary) next(slot uint64) uint64 {
	return (slot + 1) & uint64(len(v.slots)-1)
}

// tokenKey returns the bytes of a short token below their number. Of a longer one it returns a hash with the highest bit
// set, which the number has not. The parts that are read may overlap.
func tokenKey(token string) uint64 {
	n := len(token)
	switch {
	case n >= 8:
		hash := uint64(n)
		for i := 0; i < n-8; i += 8 {
			hash = mix(hash ^ load64(token[i:]))
		}
		return mix(hash^load64(token[n-8:]))>>rankBits | 1<<(63-rankBits)
	case n > longestKey:
		return mix(load32(token[n-4:])<<32|load32(token))>>rankBits | 1<<(63-rankBits)
	case n >= 4:
		return uint64(n)<<40 | load32(token[n-4:])<<(8*(n-4)) | load32(token)
	case n >= 2:
		return uint64(n)<<40 | load16(token[n-2:])<<(8*(n-2)) | load16(token)
	default:
		return uint64(n)<<40 | uint64(token[0])
	}
}

// mix spreads every bit over all others, by the folded multiplication of wyhash.
func mix(x uint64) uint64 {
	high, low := bits.Mul64(x, 0xa0761d6478bd642f)
	return high ^ low
}

// load64 returns the first 8 bytes as a little-endian number. The compiler makes one instruction of this.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

func load16(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8
}
