package wire

import (
	"errors"
	"fmt"
)

// Why a body is left alone. Both mean that the request passes with the bytes it came with.
var (
	// ErrUnparsable reports a body that is not one JSON object in valid UTF-8 without duplicate names.
	ErrUnparsable = errors.New("unparsable body")
	// ErrUnsupported reports a JSON object whose items do not have the shape the API describes.
	ErrUnsupported = errors.New("unsupported body")
)

func unsupported(reason string) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, reason)
}
