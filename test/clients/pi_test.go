package clients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// runPi runs the agent in a home and a directory of its own. Its own compaction and its retries are off: what is shown is
// the proxy's work.
func runPi(api string) func(*testing.T, string) (string, error) {
	return func(t *testing.T, baseURL string) (string, error) {
		home := t.TempDir()
		agent := filepath.Join(home, ".pi", "agent")
		if err := os.MkdirAll(agent, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(agent, "settings.json"), `{"compaction":{"enabled":false},"retry":{"enabled":false}}`)
		writeFile(t, filepath.Join(agent, "models.json"), fmt.Sprintf(`{"providers":{"mock":{
			"baseUrl":%q,"api":%q,"apiKey":"sk-test",
			"models":[{"id":"gpt-5-mini","name":"m","reasoning":true,"input":["text"],
				"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"contextWindow":128000,"maxTokens":4096}]}}}`,
			baseURL, api))
		environment := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "PI_OFFLINE=1"}
		return runNode(t, t.TempDir(), environment, absolute(t, "node_modules/.bin/pi"),
			"-p", "--provider", "mock", "--model", "gpt-5-mini", ask)
	}
}
