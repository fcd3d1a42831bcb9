package tokens
import "testing"
func BenchmarkZ(b *testing.B) {
	e := loadedEncoding(b, O200KBase)
	for name, text := range unbrokenRuns(1<<20) {
		b.Run(name, func(b *testing.B){ b.SetBytes(1<<20); b.ReportAllocs(); n:=0; for b.Loop() { n=e.count(text) }; b.ReportMetric(float64(n),"tokens") })
	}
}
func BenchmarkLoadX(b *testing.B) { for b.Loop() { Load() } }
