# landspeed: the README's two commands and the developer's few.
#
#   make tune    build, then tune a path in a lab of network namespaces (about seven minutes)
#   make test    everything that must hold before a change lands
#
# Both install what the machine lacks from Debian's or Ubuntu's packages, as root or by sudo.

CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
TOOLS := $(CURDIR)/target/tools

.PHONY: applications budgets tune test build setup setup-test disturbed check experiments capacity lint dist deb static test-dist docs bench bench-udp kills undo placebos false-keeps grid-coverage faults agree interop-udt lossy-udt cc-linux bench-wan bench-watching clean

tune: build
	$(SUDO) target/release/landspeed tune --html landspeed.html

build: setup
	$(CARGO) build --release --locked --bin landspeed --bin landspeed-helpers

# What is handed out, in target/dist: the static program and its helpers, man pages, completions, a .deb, checksums.
DIST := target/dist
dist: deb
	cd $(DIST) && find * -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

deb: static
	@.ci/install dh:debhelper dpkg-buildpackage:dpkg-dev
	.ci/deb $(DIST)
	@ls $(DIST)/*.deb

# Static for this machine's kind of processor. A target is named, so that build scripts and macros are not static too. libelf
# names what it needs itself: zlib, on newer systems also libzstd; -Bstatic, because one shared library breaks a static-pie.
MACHINE = $(shell rustc --print host-tuple)
STATIC = RUSTFLAGS="-C target-feature=+crt-static" $(CARGO) rustc --profile dist --locked -p $(1) --bin $(1) --target $(MACHINE) \
	-- -C strip=symbols -C link-args="-Wl,-Bstatic $$(pkg-config --static --libs-only-l libelf)"
static: setup
	$(call STATIC,landspeed)
	$(call STATIC,landspeed-helpers)
	rm -rf $(DIST) && mkdir -p $(DIST)
	cp target/$(MACHINE)/dist/landspeed target/$(MACHINE)/dist/landspeed-helpers $(DIST)
	$(DIST)/landspeed generate $(DIST)/share
	$(CARGO) run --quiet --locked -p xtask -- notices > $(DIST)/NOTICES

# The package and the program on fresh systems: Debian 11, 12 and 13, as far as apt's sources have them.
test-dist: dist
	@.ci/install debootstrap lintian ip:iproute2 unshare:util-linux
	$(SUDO) .ci/test-dist $(DIST)

# A C compiler for ring and libbpf; clang for BPF programs; make, pkg-config and two headers for libbpf.
setup:
	@.ci/install gcc make clang pkg-config /usr/include/libelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev

# Lab tests look at hosts with other people's tools (ip, ethtool, tc), log in with sshd, become root with sudo, look
# at the page with a browser, and kill at system calls with strace. Debian's libudt is what our UDT talks to.
setup-test: setup
	@.ci/install ip:iproute2 ethtool sshd:openssh-server ssh:openssh-client chromium sysctl:procps chrt:util-linux \
		ping:iputils-ping sudo script:bsdutils strip:binutils openssl fish nft:nftables strace g++ /usr/include/udt/udt.h:libudt-dev

# clippy's compiler takes rustc's place for the workspace, so that one build lints and makes the test programs.
LINTING := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
test: setup-test
	$(CARGO) fmt --all --check
	$(LINTING) $(CARGO) run --quiet --locked -p xtask -- check
	$(LINTING) $(CARGO) run --quiet --locked -p xtask -- test

# The same tests on a machine whose cores another program takes, four tenths of each on average, in bursts: what fails
# here and not by itself asserts how fast something was.
disturbed: setup-test
	@.ci/install stress-ng
	$(SUDO) stress-ng --quiet --cpu 0 --cpu-load 40 --cpu-load-slice 4 --sched fifo --sched-prio 50 --timeout 2h & \
	other=$$!; trap "$(SUDO) kill $$other" EXIT; trap "exit 130" INT TERM HUP; $(CARGO) run --quiet --locked -p xtask -- test

check: lint
	$(CARGO) run --quiet --locked -p xtask -- check

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Licences, sources, advisories and yanked crates, by cargo-deny, which takes some minutes to build. `make check` holds licences and
# banned crates against the same file.
.PHONY: deny
deny: $(TOOLS)/bin/cargo-deny
	$< check --hide-inclusion-graph licenses bans sources
	.ci/advisories $< $(TOOLS)

$(TOOLS)/bin/cargo-deny:
	@.ci/cargo-tool cargo-deny $(TOOLS)

# Writes the generated pages: docs/reference/knobs and its like.
docs:
	$(CARGO) run --quiet --locked -p xtask -- docs

# landspeed beside other tools, interleaved in one lab: figures, no verdict by time. BENCH_OF names experiments of experiments/bench,
# and SHORT=--short takes their short versions. `bench` has streams beside iperf3, ping-pongs beside sockperf and qperf, and UDT beside
# libudt (half an hour), bench-udp datagrams beside iperf3, nuttcp and loops in C (six minutes), transports TCP, UDT, libudt and QUIC over a
# lab and a path that loses (an hour): all on a machine left alone.
BENCH_OF := stream-one-core stream-two-cores pingpong-sockperf pingpong-qperf sweep udt
bench-udp: BENCH_OF := datagrams
transports: BENCH_OF := transports
.PHONY: transports
bench bench-udp transports: build install-bench
	for one in $(BENCH_OF); do \
		$(SUDO) target/release/landspeed run bench/$$one $(SHORT) --html target/bench-$$one.html || exit; \
	done

# What the flow FLOW (bbr, udt, udt-steady or quic-cubic) leaves to CUBIC beside it over a long path, two rounds (35 minutes, on a machine
# left alone). Each call is an occasion of its own; from the second one on, it shows what all in target/shares/FLOW say together. Remove the
# record of one that was ended early.
.PHONY: shares
shares: FLOW ?= udt
shares: build
	$(SUDO) target/release/landspeed run bench/shares --short --values flow=cubic,$(FLOW) --data-dir target/shares/$(FLOW)
	set -- target/shares/$(FLOW)/*.jsonl; [ $$# -lt 2 ] || $(SUDO) target/release/landspeed show "$$@" --full

# The studies that check what landspeed promises: $(call VALIDATE,STUDY OPTIONS).
VALIDATE = $(SUDO) target/release/validate $(1)
.PHONY: build-validate
build-validate: build
	$(CARGO) build --release --quiet --locked -p validate

# Every application that ships, in labs, on its real programs, five times each: figures, no verdict.
applications: build-validate install-applications
	$(call VALIDATE,applications)

# Real programs over each path below their sockets, with what their use of the sockets predicts (docs/results/paths.md): figures, no
# verdict (fifteen minutes, on a machine left alone).
PATHS_OF := redis nginx pgbench iperf3 qperf mpi-local
.PHONY: paths
paths: build install-applications
	for app in $(PATHS_OF); do \
		$(SUDO) target/release/landspeed compare --paths kernel,local,mptcp --app $$app --predict --blocks 12 || exit; \
	done

# `landspeed copy` beside rsync, its daemon, scp and tar over ssh, and mscp and syq where they are on PATH or in the folder of --rivals, by
# turns between two network namespaces: one large file, then many small ones, also over a round trip of 40 ms, in memory (an hour, on a machine
# left alone; BENCH_PARTS names the parts, of which each takes at most half of it). COPY_OF has options of `validate copy`: --into FILE adds each
# part to a file as an occasion, and `validate copy --pool FILE` says what five of them do.
COPY_OF :=
BENCH_PARTS := large small small-far
BENCH_large :=
BENCH_small := --files 20000
BENCH_small-far := --files 20000 --rtt 40ms
.PHONY: copy-bench
copy-bench: build-validate
	@.ci/install ip:iproute2 sshd:openssh-server ssh:openssh-client rsync ss:iproute2
	status=0; $(foreach part,$(BENCH_PARTS),$(call VALIDATE,copy $(BENCH_$(part)) $(COPY_OF)) || status=1;) exit $$status

# The same from a disk to the same disk, with dd from file to file beside it; the source's content is read from the disk each time (half an
# hour, on a machine left alone, whose /var/tmp has 6 GB). DISK_OF="--place image" takes an ext4 file system of its own.
DISK_OF := --place disk
.PHONY: copy-bench-disk
copy-bench-disk: build-validate
	@.ci/install ip:iproute2 sshd:openssh-server ssh:openssh-client rsync ss:iproute2 findmnt:util-linux losetup:mount mkfs.ext4:e2fsprogs
	status=0; for one in "" "--files 20000"; do $(call VALIDATE,copy $(DISK_OF) $$one $(COPY_OF)) || status=1; done; exit $$status

# The goodput of `landspeed copy` over that of a stream by the same transport, by turns: one large file, then many of 1 MiB, over a link of
# 1 Gb/s and 40 ms, clean and with losses of 1e-5; with BBR and UDT at 180 ms and 1e-4; and a copy of 8 GiB there that begins with CUBIC and
# chooses (an hour, on a machine left alone, with 17 GB of memory for that copy). Turns are kept in target/copy-wan.jsonl and
# target/copy-wan.chosen.jsonl: a study that was ended goes on. Remove these files to begin anew. WAN_OF has options of `validate copy-wan`,
# such as --only 1e-4, or --only chosen for that copy alone (a quarter of an hour).
WAN_OF :=
.PHONY: copy-wan
copy-wan: build-validate
	@.ci/install ip:iproute2 sshd:openssh-server ssh:openssh-client ss:iproute2
	$(call VALIDATE,copy-wan $(WAN_OF))

# 200 kills and 60 cuts of the link in the middle of a copy, ten of them for good: is a name ever given to a part of a file, and how much is
# sent again? strace(1) kills controller, source, target, or one of them with the others at once, at the entry or the exit of a system call that
# is drawn from those of a whole copy. 20 more kills, at moments, are of copies that have set both hosts (--tune): are these restored?
# (25 minutes, and 1 GB of memory) Rounds are kept in target/copy-kills.jsonl, each with its call: a study that was ended goes on.
# Remove that file to begin anew. KILLS_OF has options of `validate copy-kills`.
KILLS_OF :=
.PHONY: copy-kills
copy-kills: build-validate
	@.ci/install ip:iproute2 ss:iproute2 sshd:openssh-server ssh:openssh-client strace
	$(call VALIDATE,copy-kills $(KILLS_OF))

# The peak of both ends' memory in a copy of a million files, of a file of 1 TiB with holes, over 16 flows and 100 ms, and in one that takes 30
# minutes, in which it must not grow: at most 128 MiB (forty minutes, two cores, and 6 GB of memory for the files). Rows are kept in
# target/copy-memory.jsonl: a study that was ended goes on with the next row. Remove that file to begin anew. MEMORY_OF has options of
# `validate copy-memory`, such as --minutes 5.
MEMORY_OF :=
.PHONY: copy-memory
copy-memory: build-validate
	@.ci/install ip:iproute2 sshd:openssh-server ssh:openssh-client ss:iproute2
	$(call VALIDATE,copy-memory $(MEMORY_OF))

# Trees with everything that a tree may hold, by `landspeed copy` and beside it by rsync, tar and scp, and mscp where it is on PATH: in
# memory, on a disk and between hosts, as root and as another user; by landspeed also over mptcp, udt and a relay, over FUSE without xattrs,
# O_TMPFILE or SEEK_HOLE, and where openat2(2) is refused. What a comparer of our own finds missing, and whether landspeed's exit status says
# so (twenty minutes, 1 GB of memory and of /var/tmp; a row as soon as it is there). TREES_OF has options of `validate copy-trees`, such as
# --only relayed.
TREES_OF :=
.PHONY: copy-trees
copy-trees: build-validate
	@.ci/install ip:iproute2 nft:nftables sshd:openssh-server ssh:openssh-client rsync setpriv:util-linux ss:iproute2
	$(call VALIDATE,copy-trees $(TREES_OF))

# Bottlenecks made on purpose, twenty times each in an order of its own, each beside the same copy without it: is what `landspeed copy` names
# first what was made? (an hour and 7 GB of memory for the files, on a machine left alone) Runs are kept in
# target/copy-truth.jsonl: a study that was ended goes on. Remove that file to begin anew. TRUTH_OF has options of `validate copy-truth`:
# --minutes 6 makes copies that are long enough to be slowed (8 GB of memory; 20 runs of two truths take five hours).
TRUTH_OF :=
.PHONY: copy-truth
copy-truth: build-validate
	@.ci/install ip:iproute2 tc:iproute2 nft:nftables sshd:openssh-server ssh:openssh-client sysctl:procps pgrep:procps taskset:util-linux ss:iproute2
	$(call VALIDATE,copy-truth $(TRUTH_OF))

# Does a copy that compares settings while it runs keep what is better? 2,000 simulated copies with equal settings over each of four paths; then real
# ones of 300 s over links of the lab, each beside one that has the best of twelve settings (fifteen hours and 8 GB of memory for the files, on a
# machine left alone; it goes on where it was ended). CHOICE_OF has options of `validate copy-choice`: --minutes 80, --seconds 120, --only simulated.
CHOICE_OF :=
.PHONY: copy-choice
copy-choice: build-validate
	@.ci/install ip:iproute2 sshd:openssh-server ssh:openssh-client sysctl:procps
	$(call VALIDATE,copy-choice $(CHOICE_OF))

# What it costs that a copy accounts the time of its stages: by turns with it and without it, on one core (six minutes, on a machine left
# alone). COST_OF has options of `validate copy-cost`.
COST_OF :=
.PHONY: copy-cost
copy-cost: build-validate
	@.ci/install ip:iproute2 ssh-keygen:openssh-client taskset:util-linux
	$(call VALIDATE,copy-cost $(COST_OF))

# Peers that break the rules of a copy, at either end, and a user who swaps folders for links meanwhile, 10,000 times; then bytes of
# strangers in the place of messages (ten minutes, after the build). Whatever they try, nothing outside is touched, nothing panics, and memory is
# bounded: each attack on memory says what it cost. ATTACKS=1000 takes a tenth.
ATTACKS ?= 10000
.PHONY: copy-attacks
copy-attacks: setup
	LANDSPEED_ATTACKS=$(ATTACKS) $(CARGO) test --release --locked --lib -p landspeed-mover -- attacks:: --nocapture --test-threads 1
	PROPTEST_CASES=$(INPUTS) $(CARGO) test --release --locked --lib -p landspeed-mover -- frame:: fuzz::

# The programs of all applications. None of them starts as a service.
PROGRAMS := /usr/local/lib/landspeed
.PHONY: install-applications install-bench
install-applications: install-bench
	@.ci/install --no-services redis-server redis-benchmark:redis-tools nginx:nginx-light wrk rsync \
		pgbench:postgresql /usr/lib/postgresql:postgresql mfsmaster:moosefs-master mfschunkserver:moosefs-chunkserver \
		mfsmount:moosefs-client mpirun:openmpi-bin mpicc:libopenmpi-dev gmond:ganglia-monitor ip:iproute2
	$(SUDO) mkdir -p $(PROGRAMS)/mpi
	for one in file tile mpi; do $(SUDO) mpicc -O2 -o $(PROGRAMS)/mpi/$$one apps/mpi/$$one.c || exit; done

install-bench:
	@.ci/install --no-services iperf iperf3 nuttcp sockperf qperf gcc g++ /usr/include/udt/udt.h:libudt-dev nft:nftables ip:iproute2
	$(SUDO) mkdir -p $(PROGRAMS)
	$(SUDO) g++ -O2 -Wall -o $(PROGRAMS)/libudt apps/libudt/stream.cpp -ludt -lpthread
	$(SUDO) gcc -O2 -Wall -o $(PROGRAMS)/udp-loop apps/udp-loop/loop.c

# The recipes of docs/how-to, run as their pages say: Ansible against two hosts with sshd in network namespaces, Kubernetes' manifests
# against its schemas, what is written for Prometheus by promtool, systemd's units (five minutes, on a machine left alone). RECIPES=ansible
# runs that one. What cannot be run here is named.
RECIPES ?= ansible kubernetes prometheus systemd
NEEDS_ansible := ansible-playbook:ansible-core
NEEDS_kubernetes := pip3:python3-pip
NEEDS_prometheus := promtool:prometheus
.PHONY: how-to setup-how-to
how-to: build setup-how-to
	$(SUDO) .ci/how-to target/release/landspeed $(RECIPES)

# kubernetes-validate is not among Debian's packages: pip puts it into target.
setup-how-to: setup-test
	@.ci/install --no-services systemd-analyze:systemd setpriv:util-linux $(foreach recipe,$(RECIPES),$(NEEDS_$(recipe)))
	@[ -z "$(filter kubernetes,$(RECIPES))" ] || [ -e $(TOOLS)/kubernetes/bin ] || pip3 install --quiet --root-user-action ignore --target $(TOOLS)/kubernetes kubernetes-validate || true

# Is the least budget that tune names enough for an answer, and does a run say the same on terminals of two widths, in a
# pipe, without colours and in ASCII? Three minutes, on a machine left alone: beside other work a step may stay undecided.
budgets: setup-test
	LANDSPEED_SLOW=1 $(CARGO) test --locked -p landspeed --test life -- a_budget_without_an_answer
	LANDSPEED_SLOW=1 $(CARGO) test --locked -p landspeed --test transcripts -- a_run_on_terminals_and_elsewhere
	LANDSPEED_SLOW=1 $(CARGO) test --locked -p landspeed --test record_run

# Does explain name what was done to a path? (Twenty minutes, on a machine left alone.)
faults: SEED ?= 0
faults: build-validate
	$(call VALIDATE,faults --seed $(SEED))

# Do the commands that explain names win what it expects? Each is pasted into a shell (forty minutes, on a machine left alone; RUNS=3 takes a
# third).
.PHONY: remedies
remedies: RUNS ?= 10
remedies: SEED ?= 1
remedies: build-validate
	$(call VALIDATE,remedies --runs $(RUNS) --seed $(SEED))

# Is a stalled window made and unmade at will? (Twelve minutes, on a machine left alone.)
.PHONY: stalled
stalled: build-validate
	$(call VALIDATE,stalled)

# Does explain --capacity tell a flow that fills its path from one that leaves room? (Ten minutes, on a machine left alone.)
.PHONY: full-path
full-path: RUNS ?= 24
full-path: SEED ?= 0
full-path: build-validate
	$(call VALIDATE,full-path --runs $(RUNS) --seed $(SEED))

# Streams over paths that are lossy, slow, or down for a while, and paths that carry nothing: a figure each time, or the cause named
# (under two hours; RUNS=3 takes a quarter of one).
.PHONY: stalls
stalls: RUNS ?= 30
stalls: build
	@.ci/install nft:nftables ethtool ip:iproute2
	$(SUDO) .ci/stalls target/release/landspeed $(RUNS)

# `explain` on paths over a router that was made by other tools (shapers, policers, losses, bloat), and on downloads from nginx that a host
# or a program slows down, strengths drawn from SEED. A table of how often the first cause, the path's rate and the expected gain were
# right (two hours, on a machine left alone; RUNS=3 takes a third).
.PHONY: unseen
unseen: RUNS ?= 10
unseen: SEED ?= 1
unseen: build
	@.ci/install --no-services nft:nftables ethtool ip:iproute2 jq nginx:nginx-light curl taskset:util-linux
	$(SUDO) .ci/unseen/run target/release/landspeed $(RUNS) $(SEED)

# Five questions of users, asked of scp, nginx, redis and two comparisons: the transcripts of docs/results/questions (ten minutes).
.PHONY: questions
questions: build
	@.ci/install --no-services ip:iproute2 jq /usr/sbin/sshd:openssh-server scp:openssh-client nginx curl redis-server redis-benchmark:redis-tools
	$(SUDO) .ci/questions target/release/landspeed docs/results/questions

# SIGKILLs at random moments, on hosts and in labs: 200 of one process or two, 200 of everything, 200 of parts of a lab
# (twenty minutes); make test does 20, 8 and 8.
KILLS ?= 200
kills: setup-test
	LANDSPEED_KILLS=$(KILLS) LANDSPEED_TOTAL_KILLS=$(KILLS) $(CARGO) test --release --locked -p landspeed --test kills -- --nocapture
	LANDSPEED_KILLS=$(KILLS) $(CARGO) test --release --locked -p landspeed --test app -- processes_of_a_killed_run
	LANDSPEED_KILLS=$(KILLS) $(CARGO) test --release --locked -p landspeed --test path -- any_process_may_be_killed

# Bursts of 200 connections over `path local` while landspeed is up to half a second late at any of its steps, and 10,000 connections in a row
# with 200 ports (half an hour). Not a release build: that has nothing that makes it late.
BURSTS ?= 500
.PHONY: path-bursts
path-bursts: setup-test
	$(SUDO) env "PATH=$$PATH" LANDSPEED_BURSTS=$(BURSTS) $(CARGO) test --locked -p landspeed --test path -- --nocapture in_bursts connections_in_a_row

# Programs in Python, JavaScript, Go and Java, nginx with curl, and redis, as they are, over PATH_NAME: every byte must come back (two minutes).
.PHONY: programs
programs: build
	@.ci/install --no-services redis-server redis-benchmark:redis-tools nginx:nginx-light curl node:nodejs go:golang-go \
		javac:default-jdk-headless ss:iproute2
	$(SUDO) env "PATH=$$PATH" .ci/programs/run target/release/landspeed $(PATH_NAME)

# Other people's test suites over TCP and over PATH_NAME: CPython's network tests and Redis' own, a line for each test that fails
# over the path alone (half an hour, on a machine left alone). SUITE=redis runs that one.
PATH_NAME ?= local
.PHONY: conformance
conformance: build
	@.ci/install --no-services /usr/lib/python3.11/test/test_socket.py:libpython3.11-testsuite tclsh:tcl redis-server \
		redis-benchmark:redis-tools apt-get:apt /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
	@.ci/redis-source target/conformance/redis
	$(CARGO) test --release --locked -p landspeed --test conformance -- --nocapture
	.ci/conformance $(PATH_NAME) $(SUITE)

# Our turns and others' writes in any order: 10,000 stories on a model of a host, and 200 on real hosts beside a twin on
# which we never were; 50 real hosts on which nobody else was; 20,000 changed journals on the model and 500 on a real host;
# 50 journals taken away before everything is killed (half an hour); make test plays 1,000, 3, 3, 2,000, 16 and 4. Another
# SEED draws other stories.
UNDO_RUNS ?= 200
SEED := $(or $(SEED),$(shell date +%s))
UNDO_OF := LANDSPEED_UNDO_SEED=$(SEED) LANDSPEED_UNDO_RUNS=$(UNDO_RUNS) LANDSPEED_OWN_RUNS=50 LANDSPEED_HOST_MUTATIONS=500 LANDSPEED_TAKEN=50
undo: setup-test
	LANDSPEED_UNDO_SEED=$(SEED) LANDSPEED_UNDO_STORIES=10000 LANDSPEED_UNDO_MUTATIONS=20000 \
		$(CARGO) test --release --locked -p landspeed-knob --lib -- interleavings_end a_changed_journal
	$(UNDO_OF) $(CARGO) test --release --locked -p landspeed-knob --test journal -- --nocapture \
		interleavings:: mutations:: taken::

# Whole runs of tune in the default lab, short ones: each must end with exit 0, with everything restored.
TUNES ?= 50
.PHONY: tunes
tunes: build
	for n in $$(seq $(TUNES)); do \
		$(SUDO) target/release/landspeed tune --yes --baseline sc03 --budget 60s >target/tunes.out 2>&1 || { cat target/tunes.out; exit 1; }; \
	done

# What does it decide about nothing? 200 decisions on real trials (up to an hour).
DECISIONS ?= 200
placebos: build-validate
	$(call VALIDATE,placebos --decisions $(DECISIONS))

# Does it keep what it must not keep, and find what it must find? Whole runs on simulated trials, a row for each kind of
# noise (twenty minutes on two cores).
false-keeps: RUNS ?= 2000
false-keeps: setup
	$(CARGO) run --release --quiet --locked -p validate -- false-keeps --runs $(RUNS)

# Does tune come as far beside a program that takes 15 % of each core in bursts as it comes alone? Five pairs of runs by turns, and
# what is left of the gain (an hour and a quarter, on a machine left alone).
PAIRS ?= 5
.PHONY: stolen
stolen: build-validate
	@.ci/install stress-ng
	$(call VALIDATE,stolen --pairs $(PAIRS))

# Do a grid's intervals hold the truth, and how wide are they? Simulated grids, a row for each kind.
GRIDS ?= 4000
grid-coverage: setup
	$(CARGO) run --release --quiet --locked -p validate -- grid-coverage --grids $(GRIDS)

# One study on the kernel's sockets and in the simulator, and whether they agree by protocol (half an hour, on a machine
# left alone). Seven repeats: a run whose link was late does not count. AGREE_OF has options of `landspeed compare` for both.
WAN ?= lab:wan:rate=100M,rtt=80ms,queue=0.5bdp
SCALE ?= 0.025
REPEATS ?= 7
AGREE_OF ?=
agree: build-validate
	$(SUDO) rm -rf target/agree && mkdir -p target/agree
	$(SUDO) target/release/landspeed compare $(WAN) --scale $(SCALE) --repeats $(REPEATS) $(AGREE_OF) --data-dir target/agree/kernel
	target/release/landspeed compare $(WAN) --scale $(SCALE) --repeats 12 $(AGREE_OF) --simulate --data-dir target/agree/simulator
	$(call VALIDATE,agree target/agree/kernel/* target/agree/simulator/*)

# The same for four protocols beside open-loop cross traffic; WITHOUT names parts that TCP's senders lack on both sides
# (sack,tail-loss-probes,superpackets). Twelve repeats, because rates vary by a tenth where others come and go (25 minutes, on a machine left alone).
.PHONY: agree-cross
agree-cross: WAN = lab:wan:rate=100M,rtt=80ms,queue=0.5bdp,cross=30%,cross-on=200ms,cross-off=300ms,back.cross=0%
agree-cross: REPEATS = 12
agree-cross: AGREE_OF = -p reno,htcp,bic,cubic $(if $(WITHOUT),--without $(WITHOUT))
agree-cross: agree

# The study of Cottrell et al. on the kernel's sockets, RUNS runs of what is missing. STUDY is `full` (five protocols at full size: fifteen
# runs of sixteen minutes, four hours), `round-trips` (the same at a quarter of the length over three paths: 45 runs of four minutes, three
# hours), `simulated` (that in the simulator, at full size: ten minutes), `fairness` (two flows, 40 and 160 ms of round trip on one path of
# 100 Mb/s, beside the simulator: twenty runs of two minutes, 45 minutes) or `streams` (1 to 16 parallel streams of Reno: thirty runs of 96 s,
# fifty minutes). Records are in target/study: the same command goes on. By default RUNS takes fifty minutes at most. On a machine left alone.
STUDY ?= full
RUNS_OF_full := 3
RUNS_OF_round-trips := 12
RUNS_OF_simulated := 45
RUNS_OF_fairness := 20
RUNS_OF_streams := 30
.PHONY: study
study: RUNS ?= $(RUNS_OF_$(STUDY))
study: build-validate
	$(SUDO) .ci/study target/release $(STUDY) target/study $(RUNS)

# One occasion of every experiment of the papers in its short version, under three congestion controls, beside what the papers published (an
# hour and a half, on a machine left alone; pages and records in INTO). It begins with how long the records in LIKE say that it takes.
# ONLY=cottrell,pvfs takes those with one of these in their names, FULL=--full all at full size.
experiments: LIKE ?= $(sort $(wildcard docs/results/records/*.tar.xz))
experiments: CONTROLS ?= reno,cubic,bbr
experiments: INTO ?= target/experiments
experiments: build-validate install-applications
	$(call VALIDATE,experiments --only "$(ONLY)" $(FULL) --controls "$(CONTROLS)" --into "$(INTO)" $(if $(LIKE),--like $(LIKE)))

# Simulated series of occasions: how often their intervals hold the truth (a minute).
.PHONY: series
series: build-validate
	$(call VALIDATE,series)

# What several occasions of `make experiments` say together, and whether the first five predicted the others.
.PHONY: occasions
occasions: OCCASIONS ?= $(sort $(wildcard docs/results/records/*.tar.xz))
occasions: build-validate
	target/release/validate occasions $(OCCASIONS)

# Does measure capacity find the rate of a link that is known (two minutes, on a machine left alone)?
capacity: build-validate
	$(call VALIDATE,capacity)

# Which paths of 2004 give what cottrell-2005 has of Reno, and what do they predict of all else? The tables of
# docs/results/scene-2004.md (an hour on two cores). Runs are kept in target/scene.jsonl: a study that was ended goes on.
.PHONY: scene
scene: SETTINGS ?= 300
scene: setup
	$(CARGO) run --release --quiet --locked -p validate -- scene --settings $(SETTINGS)

# What landspeed's own observers cost a stream (forty minutes, on a machine left alone).
bench-watching: setup-test
	$(SUDO) env "PATH=$$PATH" $(CARGO) test --release --locked -p landspeed-observer --test path -- --ignored --nocapture --test-threads 1

# Inputs of strangers and sequences that no test names, a suite each, many more than make test tries: `make fuzz` runs them all
# (two hours).
FUZZ_SUITES := fuzz-cc fuzz-emulator fuzz-frames fuzz-journal fuzz-records fuzz-udt
.PHONY: fuzz $(FUZZ_SUITES)
fuzz: $(FUZZ_SUITES)

# Any sequence of calls to each congestion control (half an hour).
CASES ?= 100000
fuzz-cc: setup
	PROPTEST_CASES=$(CASES) PROPTEST_FORK=true PROPTEST_TIMEOUT=30000 $(CARGO) test --release --locked -p landspeed-congestion \
		--test algorithms -- fuzz:: --nocapture

# Frames between controller and agent and between the ends of a copy, netlink messages, and headers of datagrams and packets.
INPUTS ?= 20000
fuzz-frames: setup
	PROPTEST_CASES=$(INPUTS) $(CARGO) test --release --locked --lib -p landspeed-agent -p landspeed-kernel -p landspeed-transport \
		-p landspeed-mover -- frame:: fuzz:: netlink:: udp:: reorder_buffer::

# What is queued, lost, delayed and split by the emulator of links.
fuzz-emulator: setup
	PROPTEST_CASES=$(INPUTS) $(CARGO) test --release --locked --lib -p landspeed-lab -- emulator::

# Journals that were changed.
fuzz-journal: setup
	LANDSPEED_UNDO_SEED=$(SEED) LANDSPEED_UNDO_MUTATIONS=$(INPUTS) $(CARGO) test --release --locked --lib -p landspeed-knob -- a_changed_journal

# Records, read back and shown.
RECORDS ?= 1000
fuzz-records: setup
	PROPTEST_CASES=$(RECORDS) $(CARGO) test --release --locked -p landspeed-report --test it -- hostile

# Datagrams of strangers to our UDT, a thousand times as many as make test tries (ten minutes).
FUZZ ?= 1000
fuzz-udt: setup
	LANDSPEED_UDT_FUZZ=$(FUZZ) $(CARGO) test --release --locked -p landspeed-udt --test hostile

# Our UDT and Debian's libudt: 1 GiB, and 32 MiB over each bad network, both ways, as a stream and as messages, in packets of 1500
# and 9000 bytes (docs/results/udt-interop.md; ten minutes, on a machine left alone). LANDSPEED_UDT_ONLY=lost takes those networks.
interop-udt: setup
	@.ci/install g++ /usr/include/udt/udt.h:libudt-dev nft:nftables
	LANDSPEED_UDT_FULL=1 $(CARGO) test --release --locked -p landspeed-udt --test libudt -- --nocapture --test-threads 1 \
		every_network libudt_learns

# Our UDT over 10,000 networks that lose, delay, double and reorder, in simulated time (a minute); make test does 300.
NETWORKS ?= 10000
lossy-udt: setup
	LANDSPEED_UDT_SEEDS=$(NETWORKS) $(CARGO) test --release --locked -p landspeed-udt --test lossy -- --nocapture

# Each congestion control beside Linux 6.12's own source of it, acknowledgement by acknowledgement, and with errors planted
# in ours, which must be found (a minute, 150 MB from Debian the first time; nothing is installed or kept but under target).
cc-linux: setup
	@.ci/linux-source target/linux
	LANDSPEED_LINUX=$(CURDIR)/target/linux $(CARGO) test --release --locked -p landspeed-congestion --test algorithms -- \
		--ignored linux:: --nocapture --test-threads 1

# Does the look at the machine before an experiment refuse only what cannot be answered, and are the answers right beside a
# program that takes a part of each core (twenty minutes, on a machine left alone: 200 looks of some three seconds, and 40 runs of some eleven)? It
# prints the table of docs/results/gates.md. Runs are kept in target/gates.jsonl: a study that was
# ended, by a signal or after MINUTES, goes on. Remove that file to begin anew.
.PHONY: gates
gates: build-validate
	@.ci/install stress-ng
	$(call VALIDATE,gates $(if $(MINUTES),--minutes $(MINUTES)))

# lab:wan as ping and iperf3 see it, at 180 ms and up to 2.5 Gb/s (three minutes, on a machine left alone).
bench-wan: setup
	@.ci/install ping:iputils-ping iperf3
	$(CARGO) test --release --locked -p landspeed-lab --test witness --no-run
	$(SUDO) env "PATH=$$PATH" $(CARGO) test --release --quiet --locked -p landspeed-lab --test witness -- \
		--ignored --nocapture

# landspeed on Debian's kernels with other network drivers, in pairs of virtual machines (LANDSPEED_VM_ACCEL=tcg: without KVM): every knob, kills and undo,
# devices above the link, a power cut, refusals, programs over RDMA in software. KERNELS="5.10 6.1 6.12 newest" and DRIVERS="virtio-net e1000e vmxnet3 igb" choose
# pairs, ONLY=kill the checks with that in their names; SHORT=--short runs eight minutes a pair. After MINUTES (60) a pair ends, and the next run
# goes on with the rest. What this landspeed passed is not run again; AGAIN=--again runs it, and says what came out another way. Everything is kept in the
# folder LANDSPEED_VM (3 GB). `make vm-page` writes what was found so far into docs/results/kernels.md, and boots nothing.
.PHONY: vm vm-page vm-images setup-vm
LANDSPEED_VM ?= $(CURDIR)/target/vm
vm: setup-vm static build-validate
	$(SUDO) env LANDSPEED_VM=$(LANDSPEED_VM) LANDSPEED_VM_ACCEL=$(LANDSPEED_VM_ACCEL) target/release/validate vm $(SHORT) $(AGAIN) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only "$(ONLY)") $(if $(KERNELS),--kernels $(subst $(SPACE),$(COMMA),$(strip $(KERNELS)))) \
		$(if $(DRIVERS),--drivers $(subst $(SPACE),$(COMMA),$(strip $(DRIVERS))))

vm-page: build-validate
	LANDSPEED_VM=$(LANDSPEED_VM) target/release/validate vm --page docs/results/kernels.md

# What `lab:vm` boots, in the folder LANDSPEED_VM: Debian's kernels that KERNELS names (all four), and a root file system. `qemu` among them
# fetches Debian 13's QEMU, which has igb. Then LANDSPEED_VM=$PWD/target/vm make test boots guests too.
vm-images: setup-vm
	$(SUDO) validate/vm/prepare $(LANDSPEED_VM) $(or $(KERNELS),5.10 6.1 6.12 newest)

# landspeed's own link beside the kernel's netem with the same settings, by turns in one virtual machine of Linux 6.12 whose clock counts
# instructions: losses, order, rate and one-way delay (up to half an hour, and some minutes once for a static build). TURNS=1 takes a fifth.
# NETEM_OF has options of `validate netem`.
.PHONY: netem-agreement
netem-agreement: TURNS ?= 5
netem-agreement: setup setup-vm
	$(call STATIC,validate)
	$(SUDO) validate/vm/prepare $(LANDSPEED_VM) 6.12
	LANDSPEED_VM=$(LANDSPEED_VM) target/$(MACHINE)/dist/validate netem --turns $(TURNS) $(NETEM_OF)

setup-vm:
	@.ci/install --no-services qemu-system-x86_64:qemu-system-x86 debootstrap mksquashfs:squashfs-tools busybox:busybox-static \
		depmod:kmod cpio zstd xz:xz-utils ssh:openssh-client ip:iproute2 pkill:procps

COMMA := ,
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)

# AddressSanitizer over the unit tests of every crate with unsafe code (ten minutes). It needs a nightly Rust.
UNSAFE := agent congestion kernel knob lab observer path transport workload
NIGHTLY ?= nightly
NIGHTLY_TEST = rustup run $(NIGHTLY) $(CARGO)
.PHONY: asan miri
asan: setup
	@rustup run $(NIGHTLY) rustc --version >/dev/null || { echo "landspeed: rustup toolchain install $(NIGHTLY)" >&2; exit 1; }
	CARGO_PROFILE_DEV_DEBUG=line-tables-only ASAN_OPTIONS=detect_leaks=0 RUSTFLAGS=-Zsanitizer=address $(NIGHTLY_TEST) test --locked --lib --target $$(rustc --print host-tuple) --target-dir target/asan \
		$(addprefix -p landspeed-,$(UNSAFE))

# Miri over the unit tests that its interpreter can run: those of unsafe code that parses or lays out bytes. What calls the kernel
# is asan's. It needs the component miri of a nightly Rust, which not every nightly has.
miri: setup
	@rustup component add --toolchain $(NIGHTLY) miri rust-src || { echo "landspeed: $(NIGHTLY) has no Miri: make asan" >&2; exit 1; }
	PROPTEST_CASES=16 MIRIFLAGS=-Zmiri-disable-isolation $(NIGHTLY_TEST) miri test --locked --lib --target-dir target/miri \
		-p landspeed-kernel -p landspeed-observer -p landspeed-transport -- \
		tcp_info::raw:: wire:: netlink::attr:: netlink::sock_diag::id:: netlink::sock_diag::socket::

clean:
	$(CARGO) clean
