package wire

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Why a body is left alone. Both mean that the request passes with the bytes it came with.
var (
	// ErrUnparsable reports a body that is not one JSON object in valid UTF-8 without duplicate names.
	ErrUnparsable = errors.New("unparsable body")
	// ErrUnsupported reports a JSON object whose items do not have the shape the API describes.
	ErrUnsupported = errors.New("unsupported body")
)

// unparsable says where reading failed. It leaves out the decoder's own words, which quote names and bytes of the
// body.
func unparsable(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Errorf("%w: at byte %d", ErrUnparsable, syntax.ByteOffset)
	}
	return fmt.Errorf("%w: %w", ErrUnparsable, err)
}

func unsupported(reason string) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, reason)
}
