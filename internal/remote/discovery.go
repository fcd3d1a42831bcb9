package remote

import (
	"slices"
	"strings"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// discovery is what a look at an upstream has found so far: its models, each name once, in the order in which they were found.
type discovery struct {
	models []wire.ModelLimits
	at     map[string]int
}

func newDiscovery(models []wire.ModelLimits) *discovery {
	d := &discovery{at: map[string]int{}}
	d.add(models...)
	return d
}

// add takes what a server says of models. What was known before stands.
func (d *discovery) add(models ...wire.ModelLimits) {
	for _, l := range models {
		i, listed := d.at[l.Name]
		switch {
		case !listed:
			d.at[l.Name] = len(d.models)
			d.models = append(d.models, l)
		case !d.models[i].Known():
			d.models[i] = l
		}
	}
}

// complete reports whether the limits of all models are known.
func (d *discovery) complete() bool { return len(d.open(1)) == 0 }

// open returns the names of the first models whose limits are not known, at most so many.
func (d *discovery) open(most int) []string {
	var names []string
	for _, l := range d.models {
		if len(names) < most && !l.Known() {
			names = append(names, l.Name)
		}
	}
	return names
}

// known returns the models whose limits are known, sorted by name.
func (d *discovery) known() []wire.ModelLimits {
	var known []wire.ModelLimits
	for _, l := range d.models {
		if l.Known() {
			known = append(known, l)
		}
	}
	slices.SortFunc(known, func(a, b wire.ModelLimits) int { return strings.Compare(a.Name, b.Name) })
	return known
}
