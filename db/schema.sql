-- The database of kbisectd, version 1.
--
-- A job has candidates (commits that were picked, its two endpoints first), a candidate has runs
-- (boots), a run has samples (one for each metric that the benchmark printed). Nothing here assumes
-- that jobs run one after the other: whatever is unfinished is found by its own state.
--
-- Times are Unix milliseconds, 0 = not yet; durations are milliseconds. Files are named by their
-- full path. Ids are never used twice. Large columns stand last, so that a list reads past none.

CREATE TABLE job (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid   INTEGER NOT NULL,           -- who submitted it
	owner_name  TEXT NOT NULL,              -- and their name then
	name        TEXT NOT NULL,
	host        TEXT,                       -- the machine that measures
	state       TEXT NOT NULL CHECK (state IN
		('queued', 'running', 'held', 'done', 'failed', 'cancelled')),
	result      TEXT,                       -- culprit, set, not-reproducible, inconclusive
	reason      TEXT,                       -- one sentence: why held or failed, what was found
	submitted   INTEGER NOT NULL DEFAULT 0,
	started     INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	infra       INTEGER NOT NULL DEFAULT 0, -- infrastructure failures in a row
	source_name TEXT,                       -- the job file's name, for error texts
	source_dir  TEXT,                       -- what its relative paths are taken from
	source_text TEXT NOT NULL,              -- the job file as submitted
	facts       TEXT,                       -- JSON: what the accept step found
	summary     TEXT                        -- JSON: the end result
) STRICT;

-- "What is unfinished" at every start and every turn of the planner, and filtered lists.
CREATE INDEX job_by_state ON job (state, id);

CREATE TABLE candidate (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	job         INTEGER NOT NULL REFERENCES job (id),
	sha         TEXT NOT NULL,
	label       TEXT,                       -- a tag's name or an abbreviated id
	subject     TEXT,
	role        TEXT NOT NULL CHECK (role IN ('good', 'bad', 'candidate')),
	build       TEXT NOT NULL CHECK (build IN ('none', 'ok', 'failed')),
	build_key   TEXT,                       -- in the artefact store
	kernel      TEXT,                       -- file
	image       TEXT,                       -- SHA-256 of the kernel
	build_error TEXT,                       -- the compiler's first error line
	build_log   TEXT,                       -- file
	build_ms    INTEGER NOT NULL DEFAULT 0,
	mark        TEXT CHECK (mark IN ('good', 'bad', 'skip')), -- verdict set by hand
	mark_by     TEXT,
	mark_why    TEXT,
	UNIQUE (job, id)                        -- the list of a job; what run refers to
) STRICT;

CREATE TABLE run (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	job         INTEGER NOT NULL,
	candidate   INTEGER NOT NULL,
	outcome     TEXT,                       -- NULL while it runs; ok, panic, silence, ...
	detail      TEXT,                       -- one line: the panic's first line, what is missing
	accel       TEXT,                       -- kvm, tcg
	timing      TEXT,                       -- wall, virtual
	dir         TEXT,                       -- folder: console.log, output.log, domain.xml, ...
	boot_ms     INTEGER NOT NULL DEFAULT 0,
	test_ms     INTEGER NOT NULL DEFAULT 0,
	started     INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	value       TEXT,                       -- the job's metric as the benchmark printed it
	number      REAL,                       -- the same as a number
	retired     INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
	retired_by  TEXT,
	retired_why TEXT,
	metrics     TEXT,                       -- JSON of all metrics, as the measure step gave it
	FOREIGN KEY (job, candidate) REFERENCES candidate (job, id)
) STRICT;

CREATE INDEX run_by_job ON run (job, id);
CREATE INDEX run_by_candidate ON run (candidate);
-- What a daemon that died left behind.
CREATE INDEX run_unfinished ON run (job) WHERE outcome IS NULL;

CREATE TABLE sample (
	run         INTEGER NOT NULL REFERENCES run (id),
	metric      TEXT NOT NULL,
	value       REAL,                       -- the number that counts for this boot
	text        TEXT,                       -- as printed
	every       TEXT,                       -- JSON: the text of each iteration
	PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;

-- A job's diary, written in the transaction of the change that an entry tells about.
CREATE TABLE event (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	job         INTEGER NOT NULL REFERENCES job (id),
	at          INTEGER NOT NULL,
	kind        TEXT NOT NULL,              -- state, note, step, run, build, verdict
	text        TEXT,                       -- one line for people
	data        TEXT                        -- JSON object for programs
) STRICT;

CREATE INDEX event_by_job ON event (job, id);

CREATE TABLE mail (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	job         INTEGER NOT NULL REFERENCES job (id),
	state       TEXT NOT NULL CHECK (state IN ('queued', 'sent', 'rejected')),
	attempts    INTEGER NOT NULL DEFAULT 0,
	due         INTEGER NOT NULL DEFAULT 0, -- when to try (again)
	message_id  TEXT NOT NULL UNIQUE,       -- so no mail is queued twice
	request     TEXT NOT NULL,              -- JSON: the mail step's, without the server's settings
	error       TEXT                        -- the last attempt's
) STRICT;

CREATE INDEX mail_by_job ON mail (job, id);
CREATE INDEX mail_due ON mail (due) WHERE state = 'queued';
