package proxy

import (
	"context"
	"math"
	"time"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// counted learns from the input that the upstream counted for a request, and what the estimate was, both in tokens. It returns
// the factor between them that is in use from now on, and whether it has just moved.
func (l *Learned) counted(key learnedKey, input, estimate int) (factor float64, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calibration := &l.of(key, time.Now()).calibration
	before := calibration.factor()
	calibration.add(float64(input) / float64(estimate))
	return calibration.factor(), calibration.factor() != before
}

// calibrate learns from what the upstream counted for a request that it took. The answer has gone out.
func (p *Proxy) calibrate(ctx context.Context, x *exchange) {
	input := x.answer.Usage[wire.InputTokens]
	if x.learn == (learnedKey{}) || input == 0 || !x.decision.counted || !x.accepted || x.answer.Failed() {
		return
	}
	factor, moved := p.learned.counted(x.learn, input, x.decision.forwarded())
	if moved {
		p.learned.sync(ctx, x.learn)
	}
	p.metrics.calibration.WithLabelValues(x.decision.rule).Set(factor)
}

const (
	// calibrationStep is what the factor moves by, and how far the mean must be from it to count as outside.
	calibrationStep = 0.05
	// calibrationSamples is how many samples in a row must be outside for the factor to move: each move moves every cut.
	calibrationSamples = 20
	// calibrationWeight is the weight of a new sample in the mean.
	calibrationWeight = 0.1
	// The factor is never below or above these: what is further off is no matter of counting.
	leastCalibration, mostCalibration = 0.7, 1.6
)

// calibration is by how much the upstream counts more than the estimate. The zero value is 1.
type calibration struct {
	mean    float64 // exponentially weighted, 0 before the first sample
	current float64 // 0 is 1
	outside int     // samples since the mean was last near the factor
}

func (c *calibration) factor() float64 {
	if c.current == 0 {
		return 1
	}
	return c.current
}

func (c *calibration) add(sample float64) {
	if c.mean == 0 {
		c.mean = sample
	}
	c.mean += calibrationWeight * (sample - c.mean)
	target := min(max(math.Round(c.mean/calibrationStep)*calibrationStep, leastCalibration), mostCalibration)
	if math.Abs(target-c.factor()) < calibrationStep/2 {
		c.outside = 0
		return
	}
	if c.outside++; c.outside >= calibrationSamples {
		c.current, c.outside = target, 0
	}
}
