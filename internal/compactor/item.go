package compactor

// Role says what an item is to a compactor, whatever the API calls it.
type Role uint8

// The roles. Developer messages are System: both APIs treat the two alike.
const (
	Opaque     Role = iota // an item type this program does not know
	System                 // system and developer messages
	User                   // what the user said
	Assistant              // a model's message, with or without tool calls
	Reasoning              // a model's reasoning, where it is an item of its own
	ToolCall               // a tool call, where it is an item of its own
	ToolResult             // the answer of a tool
)

// Added is the Source of an item that no element of the request stands for.
const Added = -1

// Item is one element of a conversation as a compactor sees it: plain values, no JSON.
type Item struct {
	Role Role
	// ID is what the server calls the item, empty where it has no name. A server that gave an item an id may refuse it
	// without the reasoning before it.
	ID string
	// Text is what a reader sees: the text parts joined by newlines, for a tool result without a separator.
	Text string
	// HasText tells an empty text from none at all (null, absent or no text part).
	HasText bool
	// Name is the participant's name (the name member of a message), empty when there is none.
	Name string
	// Editable allows Text to be replaced. A result that also holds media may be replaced by a placeholder as a whole,
	// but not shortened.
	Editable bool
	// Calls are the tool calls this item makes.
	Calls []Call
	// Answers is the id of the call this item answers. Ids may be reused by later calls.
	Answers string
	// Tool is the name of the tool whose result this is: the name in the call it answers, else its own, else empty.
	Tool string
	// Failed marks the result of a tool that reported an error, where the wire format says so.
	Failed bool
	// Media are the images, files and audio beside the text.
	Media Media
	// Hidden is the length in bytes of what the model receives but a reader does not see: reasoning, unknown members.
	Hidden int
	// Size is what the plan's counter measured. It is zero until the conversation is measured.
	Size Size
	// Source is the index of the element in the request, or Added. It alone decides what is spliced.
	Source int
	// Raw is the element's bytes in the body. For an added item it is what to send, or nil to send Role and Text. Local
	// compactors never read it.
	Raw []byte
	// Mark names the compactor that made or changed this item; it is known within a replay only.
	Mark string
	// Prefix is a note merged in front of Text; empty when there is none.
	Prefix string
	// Pinned forbids removing or editing the item. A plan adds its own pins to those the caller set.
	Pinned bool

	structure
}

// structure is what NewConversation and a plan know of an item's place in the conversation.
type structure struct {
	// group is the index of the first item of the group; see groupItems.
	group int
	// answered is, of an item with calls, the index of the item that answers the last of them.
	answered int
	// head marks the leading system items, opening the user items before the first model-made one.
	head, opening bool
	// preset remembers that the caller pinned the item.
	preset bool
	// kept forbids removing the item but not shortening it: the newest group and calls without an answer.
	kept bool
	// anchored forbids the same, because another item of the group is pinned.
	anchored bool
	// fresh marks what a summarizer or a service made in the present chain run: a later step of the same run must not remove
	// what was just paid for.
	fresh bool
	// past is what an omission note stands for, on the note or on the user item it is merged into.
	past past
	// instead is, of an added item, one more than the Source of the first item it took the place of; 0 for a note.
	instead int
}

// AfterPrefix stands between a prefix and the text it is merged with.
const AfterPrefix = "\n\n"

// FullText returns the text as it is sent: behind the prefix, if there is one.
func (i *Item) FullText() string {
	if i.Prefix == "" || i.Text == "" {
		return i.Prefix + i.Text
	}
	return i.Prefix + AfterPrefix + i.Text
}

// ModelMade reports whether the model wrote the item.
func (i *Item) ModelMade() bool {
	return i.Role == Assistant || i.Role == Reasoning || i.Role == ToolCall
}

// output reports whether the item is a part of what the client asked for: model-made, or a call of an unknown kind.
func (i *Item) output() bool { return i.ModelMade() || i.Role == Opaque && len(i.Calls) > 0 }

// stays reports whether the item must not be removed.
func (i *Item) stays() bool { return i.Pinned || i.kept || i.anchored || i.fresh }

// said reports whether the user wrote the item: a user item that no compactor made.
func (i *Item) said() bool { return i.Role == User && i.Mark == "" }

// standsIn reports whether the item is what a compactor put in the place of others, and not for another one to remove: it
// speaks where the user did, or is what a service made of them.
func (i *Item) standsIn() bool {
	return i.Role == User && i.Mark != "" || i.Source == Added && i.Raw != nil
}

// conversational reports whether the item is one that user, model or tool wrote.
func (i *Item) conversational() bool { return i.Role != System && i.Role != Opaque }

// isNote reports whether the item is a note about removed items. One with a note merged into it is not.
func (i *Item) isNote() bool { return i.Role == User && i.Prefix == "" && i.past.removed > 0 }

// callsTools reports whether the item holds calls that the client answers.
func (i *Item) callsTools() bool { return len(i.Calls) > 0 && i.Role != Opaque }

// Call is one tool call.
type Call struct {
	// ID pairs the call with its result.
	ID string
	// Tool is the name of the called tool.
	Tool string
	// Arguments are as the model wrote them: JSON text for functions, free text for custom tools.
	Arguments string
}

// Media are the parts of an item that are not text.
type Media struct {
	Images []Image
	Files  []File
	Audio  []Audio
}

// Empty reports whether there are no media at all.
func (m Media) Empty() bool { return len(m.Images) == 0 && len(m.Files) == 0 && len(m.Audio) == 0 }

// Image is one image part.
type Image struct {
	// URL is a data URL or a link, as the client wrote it.
	URL string
	// Detail is low, high, auto, original or empty.
	Detail string
}

// File is one file part: its content as a data URL, or the id of an uploaded file.
type File struct {
	Name string
	Data string
	ID   string
}

// Audio is one audio part, or the id of an earlier audio answer.
type Audio struct {
	// Data is base64.
	Data   string
	Format string
	ID     string
}

// Size is what a Counter adds up. Sizes of items are summed member by member and turned into tokens only then, because
// a counter that divides text by a constant is not additive in tokens.
type Size struct {
	// Length is in the counter's own unit: tokens, bytes or characters.
	Length int
	// Flat is in tokens: images, files and audio.
	Flat int
	// Items is the number of items measured.
	Items int
}

// Plus returns the size of s and o together.
func (s Size) Plus(o Size) Size {
	return Size{Length: s.Length + o.Length, Flat: s.Flat + o.Flat, Items: s.Items + o.Items}
}

// Minus returns what remains of s when o is taken out of it.
func (s Size) Minus(o Size) Size {
	return Size{Length: s.Length - o.Length, Flat: s.Flat - o.Flat, Items: s.Items - o.Items}
}

// Counter measures items. It must be safe for concurrent use and give the same answer every time.
type Counter interface {
	// Measure returns the size of one item. It reads everything of it but Raw, Size, Source and Mark.
	Measure(Item) Size
	// Tokens returns the number of tokens of a sum of sizes. It never falls when the size grows.
	Tokens(Size) int
}
