package demo

import "strings"

// CodingSession returns the story of the demo: an agent that mends a service over five turns of its user. It takes about
// 40,000 tokens in all, single results between ten and some 5,000, so a window of 16,000 tokens is enough for any one
// step of it but not for the whole.
func CodingSession() Session {
	return Session{
		Model: "gpt-4o-mini",
		System: strings.Join([]string{
			"You are a careful coding agent. You work in the repository of the service `orders`, written in Go.",
			"Read before you write. Change as little as the task needs. Run the tests after every change and do not",
			"finish a task while one fails. Say in two or three sentences what you did when you are done.",
			"Never push, never touch anything outside the repository, and ask before you delete data.",
		}, "\n"),
		Tools: []Tool{
			{"list_files", "List the files of a directory of the repository.", "path"},
			{"read_file", "Read a whole file of the repository.", "path"},
			{"search", "Search all files for a text and return the lines that have it.", "text"},
			{"run", "Run a shell command in the repository and return what it prints.", "command"},
			{"apply_patch", "Apply a unified diff to the repository.", "patch"},
		},
		Turns: []Turn{findTheCause(), fixTheCause(), writeTheMigration(), makeItFaster(), wrapUp()},
	}
}

// one is a step with a single call and no text.
func one(tool, argument, result string) Step {
	return Step{Actions: []Action{{tool, argument, result}}}
}

// say adds text to a step.
func say(text string, step Step) Step {
	step.Say = text
	return step
}

// findTheCause reads a lot and changes nothing: it fills the window almost to the trigger.
func findTheCause() Turn {
	return Turn{
		Ask: "The nightly import of 14 March wrote some orders twice. Find out why. Do not change anything yet.",
		Steps: []Step{
			say("I look around first.", one("list_files", ".", listing(18))),
			one("read_file", "README.md", "# orders\n\nTakes orders from partners, stores them and hands them to shipping.\n"+
				"`make test` runs the tests. The import runs at 02:00 on two workers.\n"),
			one("search", "ImportBatch", hits("ImportBatch", 14)),
			one("read_file", "internal/importer/importer.go", source("importer", 14)),
			say("The workers share a lease. I read how it is taken.", Step{Actions: []Action{
				{"read_file", "internal/lease/lease.go", source("lease", 5)},
				{"read_file", "internal/lease/lease_test.go", source("lease_test", 4)},
			}}),
			one("run", "zgrep -h . logs/import-2026-03-14.log.gz | head -70", logs("w1", 70)),
			one("run", "go test ./internal/importer -run TestTwoWorkers -v",
				testRun("importer", 10, "TestTwoWorkersImportOnce")),
			one("search", "lease.Claim", hits("lease.Claim", 9)),
		},
		Answer: "The lease expires after 30 s, but batch 7 took 41 s that night. The second worker then claimed the same " +
			"batch and wrote its orders again. Nothing in the database prevents it, because the import key is not unique.",
	}
}

// fixTheCause gives an order that must hold to the end of the session, and dies of a log without a proxy.
func fixTheCause() Turn {
	return Turn{
		Ask: "Good. Fix it so that a late worker cannot write a batch twice. Keep the exported API of package store as it " +
			"is: partners compile against it.",
		Steps: []Step{
			one("read_file", "internal/store/store.go", source("store", 18)),
			one("run", "grep -rn 'store\\.' partners/", hits("store.Load", 22)),
			say("The worker has to renew its lease while it writes.", one("apply_patch",
				patch("internal/lease/lease.go", "\tgo l.renew(ctx, l.ttl/3)"), "patched 1 file\n")),
			one("run", "go build ./...", ""),
			one("apply_patch", patch("internal/store/store.go", "\tif !s.lease.Held(ctx) {", "\t\treturn 0, errLeaseLost", "\t}"),
				"patched 1 file\n"),
			one("run", "go test ./internal/lease ./internal/store -v", testRun("store", 60, "")),
			one("run", "go test ./internal/importer -run TestTwoWorkers -v",
				testRun("importer", 16, "TestTwoWorkersImportOnce")),
			say("Still red: the old worker wakes up after its lease is gone. I look at a full run of both workers.",
				one("run", "go run ./cmd/simulate -workers 2 -slow-batch 7", logs("w2", 110))),
			one("apply_patch", patch("internal/importer/importer.go", "\tkey := importKey(day, batch)"), "patched 1 file\n"),
			one("run", "go test ./... -v", testRun("importer", 30, "")),
		},
		Answer: "A worker now renews its lease three times per period and checks it before every write. A batch carries an " +
			"import key. All tests pass and the exported API of store is unchanged.",
	}
}

// writeTheMigration has the largest single result, over a quarter of the demo's window.
func writeTheMigration() Turn {
	return Turn{
		Ask: "Now the database: make the import key unique, as a plain SQL migration. Mind the rows that exist twice already, " +
			"here are some:\n\n" + rows(60),
		Steps: []Step{
			{Actions: []Action{
				{"list_files", "migrations", listing(12)},
				{"read_file", "migrations/0041_leases.sql", "ALTER TABLE leases ADD COLUMN renewed_at timestamptz;\n"},
			}},
			one("run", "psql -c '\\d orders'", columns(26)),
			one("run", "psql -f count_duplicates.sql", "duplicates\n----------\n       318\n(1 row)\n"),
			one("run", "psql -f list_duplicates.sql", rows(160)),
			say("The doubles differ only in their id; the newer one goes to an archive table.", one("apply_patch",
				patch("migrations/0042_import_key.sql", "CREATE TABLE orders_archive (LIKE orders);",
					"INSERT INTO orders_archive SELECT * FROM orders WHERE id IN (SELECT id FROM doubles);",
					"CREATE UNIQUE INDEX orders_import_key ON orders (import_key);"), "patched 1 file\n")),
			one("run", "make migrate-test", testRun("schema", 36, "")),
			one("read_file", "internal/schema/schema.go", source("schema", 10)),
			one("run", "go test ./internal/schema -v", testRun("schema", 30, "")),
		},
		Answer: "Migration 0042 moves the 318 doubles to orders_archive and then creates the unique index. It ran on a copy " +
			"of the database and the tests pass.",
	}
}

// makeItFaster repeats commands whose earlier results are long gone.
func makeItFaster() Turn {
	return Turn{
		Ask: "The import got slower with the new index. See what can be done, but do not drop the index. This is last night's " +
			"log:\n\n" + logs("w1", 60),
		Steps: []Step{
			one("run", "go test ./internal/store -bench . -benchmem", benchmarks(30)),
			one("run", "tail -n 45 logs/postgres.log", logs("postgres", 45)),
			one("read_file", "internal/store/batch.go", source("batch", 12)),
			say("It writes row by row. One statement per batch saves most round trips.", one("apply_patch",
				patch("internal/store/batch.go", "\tstmt := buildInsert(rows) // one statement per batch"), "patched 1 file\n")),
			one("run", "go test ./internal/store -v", testRun("store", 60, "")),
			one("run", "go test ./internal/store -bench . -benchmem", benchmarks(30)),
			one("run", "go vet ./... && go test ./...", testRun("all", 40, "")),
		},
		Answer: "A batch is now one INSERT with ON CONFLICT DO NOTHING. The import takes 12 s instead of 41 s and the index " +
			"stays.",
	}
}

// wrapUp asks for what the user ordered three turns ago.
func wrapUp() Turn {
	return Turn{
		Ask: "Write the changelog entry and check once more that the exported API of store did not change.",
		Steps: []Step{
			one("run", "git diff --stat main", " internal/importer/importer.go     | 14 ++++\n internal/lease/lease.go           |"+
				"  9 +++\n internal/store/batch.go           | 31 ++++----\n migrations/0042_import_key.sql    | 12 ++++\n"),
			one("run", "apidiff main ./internal/store", "no differences in the exported API\n"),
			one("read_file", "CHANGELOG.md", changelog(40)),
			one("apply_patch", patch("CHANGELOG.md", "- Fixed: a slow batch is no longer imported twice (migration 0042)."),
				"patched 1 file\n"),
			one("run", "make check", testRun("all", 40, "")),
		},
		Answer: "Done. The changelog names the fix and migration 0042, the exported API of store is unchanged, and `make " +
			"check` passes.",
	}
}
