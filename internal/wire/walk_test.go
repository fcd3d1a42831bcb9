package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWalkFindsWhereValuesEnd(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   []string // names and values in turn
	}{
		"an empty object":              {`{}`, nil},
		"an empty object with space":   {"{ \t\r\n }", nil},
		"literals and numbers":         {`{"a":null,"b":true ,"c":false` + "\n" + `,"d":-1.5e+3` + "\t" + `,"e":0}`, []string{"a", "null", "b", "true", "c", "false", "d", "-1.5e+3", "e", "0"}},
		"strings with escapes":         {`{"a":"\"","b":"\\","c":"\\\"","d":"\\\\","e":"","f":"\u0022"}`, []string{"a", `"\""`, "b", `"\\"`, "c", `"\\\""`, "d", `"\\\\"`, "e", `""`, "f", `"\u0022"`}},
		"brackets in strings":          {`{"a":"}]","b":["[{",{"}":"]"}],"c":{"{":"\"}"}}`, []string{"a", `"}]"`, "b", `["[{",{"}":"]"}]`, "c", `{"{":"\"}"}`}},
		"names with escapes":           {`{"\u0061\"":1,"\\":2}`, []string{`a"`, "1", `\`, "2"}},
		"space around everything":      {"{ \"a\" : [ 1 , 2 ] , \"b\" :\n{ } }", []string{"a", "[ 1 , 2 ]", "b", "{ }"}},
		"text beyond ASCII":            {`{"ü":"😀","b":1}`, []string{"ü", `"😀"`, "b", "1"}},
		"containers inside containers": {`{"a":[[[]],[{}]],"b":{"c":{"d":[]}}}`, []string{"a", `[[[]],[{}]]`, "b", `{"c":{"d":[]}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			object := []byte(test.object)
			var got []string
			for name, value := range members(object) {
				got = append(got, string(name), string(value.of(object)))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWalkIsLinear(t *testing.T) {
	const size = 4 << 20
	for name, content := range map[string]string{
		"escaped line breaks": strings.Repeat(`\n`, size/2),
		"escaped quotes":      strings.Repeat(`\"`, size/2),
		"backslashes":         strings.Repeat(`\\`, size/2),
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, `{"messages":[{"role":"user","content":"`+content+`"}]}`)
			started := time.Now()
			if _, err := d.Items(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("%v for %d bytes", took, size)
			}
		})
	}
}
