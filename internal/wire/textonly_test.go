package wire

import "testing"

func TestTextOnly(t *testing.T) {
	for name, test := range map[string]struct {
		item string
		want bool
	}{
		"a text":                 {`{"role":"user","content":"hi"}`, true},
		"no content":             {`{"role":"assistant","content":null}`, true},
		"parts that are text":    {`{"role":"user","content":[{"text":"a","type":"text"},{"type":"input_text"}]}`, true},
		"an empty content":       {`{"role":"user","content":[]}`, true},
		"calls":                  {`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}}]}`, true},
		"reasoning":              {`{"type":"reasoning","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"x"}`, true},
		"an image":               {`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}`, false},
		"a type in escapes":      {`{"role":"user","content":[{"type":"t\u0065xt","text":"a"}]}`, false},
		"a part without a type":  {`{"role":"user","content":[{"text":"a"}]}`, false},
		"a part that is none":    {`{"role":"user","content":["a"]}`, false},
		"a content that is none": {`{"role":"user","content":5}`, false},
		"a spoken answer":        {`{"role":"assistant","audio":{"id":"a"}}`, false},
		"a screenshot":           {`{"type":"computer_call_output","call_id":"a","output":{"image_url":"x"}}`, false},
		"an image that was made": {`{"type":"image_generation_call","result":"AAAA"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			for api, member := range map[API]string{Chat: "messages", Responses: "input"} {
				d, err := Parse(api, []byte(`{"`+member+`":[`+test.item+`]}`))
				if err != nil {
					t.Fatal(err)
				}
				if got := d.TextOnly(0); got != test.want {
					t.Errorf("%s: got %v, want %v", api, got, test.want)
				}
			}
		})
	}
	if d, err := Parse(Responses, []byte(`{"input":"hi"}`)); err != nil || !d.TextOnly(0) {
		t.Error("an input that is a string is no text")
	}
}
