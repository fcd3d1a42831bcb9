package wire

// place is where a value stands in a JSON text of a response, as far as that is of interest.
type place uint8

// The places of containers, then those of identifiers, then those of counts in the order of the UsageKinds.
const (
	nowhere place = iota
	atText
	atTop
	atResponse
	atChoices
	atChoice
	atUsage
	atInputDetails
	atOutputDetails
	atIncompleteDetails
	atTransformations
	atTransformation
	atError
	atOutput
	atOutputItem

	atObject
	atType
	atCode
	atStatus
	atFinishReason
	atIncompleteReason
	atErrorCode
	atErrorType
	atTransformationType
	atTransformationAction
	atTransformationReason
	atOutputItemType

	atInputTokens
	atCachedTokens
	atCacheWriteTokens
	atOutputTokens
	atReasoningTokens
)

const (
	firstIdentifier = atObject
	firstCount      = atInputTokens
)

// isScalar reports whether a scalar at this place is of interest.
func (p place) isScalar() bool { return p >= firstIdentifier }

// element returns the place of an element of an array. Some servers answer with an array of errors.
func (p place) element() place {
	switch p {
	case atText:
		return atTop
	case atChoices:
		return atChoice
	case atTransformations:
		return atTransformation
	case atOutput:
		return atOutputItem
	}
	return nowhere
}

// member returns the place of a member of an object.
func (p place) member(name string) place {
	switch p {
	case atText, atTop:
		return topMember(name)
	case atResponse:
		return responseMember(name)
	case atChoice:
		return choiceMember(name)
	case atUsage, atInputDetails, atOutputDetails:
		return p.usageMember(name)
	case atTransformation:
		return transformationMember(name)
	case atError:
		return errorMember(name)
	case atIncompleteDetails:
		if name == "reason" {
			return atIncompleteReason
		}
	case atOutputItem:
		if name == "type" {
			return atOutputItemType
		}
	}
	return nowhere
}

// topMember is of a chat completion, of a part of one, of a response, of an event or of an error.
func topMember(name string) place {
	switch name {
	case "choices":
		return atChoices
	case "response":
		return atResponse
	case "object":
		return atObject
	case "type":
		return atType
	case "code":
		return atCode
	case "item":
		return atOutputItem
	}
	return responseMember(name)
}

func responseMember(name string) place {
	switch name {
	case "usage":
		return atUsage
	case "status":
		return atStatus
	case "error":
		return atError
	case "incomplete_details":
		return atIncompleteDetails
	case "input_transformations":
		return atTransformations
	case "output":
		return atOutput
	}
	return nowhere
}

// choiceMember knows that Kimi reports the usage of a stream in a choice.
func choiceMember(name string) place {
	switch name {
	case "finish_reason":
		return atFinishReason
	case "usage":
		return atUsage
	}
	return nowhere
}

// usageMember knows the names of both APIs, and the one of DeepSeek.
func (p place) usageMember(name string) place {
	switch {
	case p == atInputDetails && name == "cached_tokens":
		return atCachedTokens
	case p == atInputDetails && name == "cache_write_tokens":
		return atCacheWriteTokens
	case p == atOutputDetails && name == "reasoning_tokens":
		return atReasoningTokens
	case p != atUsage:
		return nowhere
	}
	switch name {
	case "prompt_tokens", "input_tokens":
		return atInputTokens
	case "completion_tokens", "output_tokens":
		return atOutputTokens
	case "prompt_tokens_details", "input_tokens_details":
		return atInputDetails
	case "completion_tokens_details", "output_tokens_details":
		return atOutputDetails
	case "prompt_cache_hit_tokens":
		return atCachedTokens
	}
	return nowhere
}

func transformationMember(name string) place {
	switch name {
	case "type":
		return atTransformationType
	case "action":
		return atTransformationAction
	case "reason":
		return atTransformationReason
	}
	return nowhere
}

func errorMember(name string) place {
	switch name {
	case "code":
		return atErrorCode
	case "type":
		return atErrorType
	}
	return nowhere
}
