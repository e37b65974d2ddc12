# SPDX-License-Identifier: MIT
# A thin front to meson: `make` builds into build/, which runs in place as build/xheap. If packages are missing, `make` says what to type. check, demo and the
# other goals install them (scripts/setup).
BUILD ?= build
PREFIX ?= /usr/local
# One more than two processors: some tests wait most of their time.
JOBS ?= 3
# Of make fuzz: libfuzzer, or afl for AFL++.
ENGINE ?= libfuzzer
# Debian changes this file with each package. What a build directory knows of libraries may be older.
PACKAGES ?= $(wildcard /var/lib/dpkg/status)

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja: $(PACKAGES)
	@scripts/setup --list build
	@$(if $(wildcard $@),meson configure $(BUILD) --clearcache && meson setup $(BUILD) --reconfigure,meson setup $(BUILD) --prefix=$(PREFIX) $(MESON_OPTIONS))

setup-check setup-demo:
	@BUILD=$(BUILD) scripts/setup $(subst setup-,,$@)

# Warnings of gcc are errors from here on in this build directory. Other compilers, whose warnings nobody has seen, may warn of what they like.
strict: $(BUILD)/build.ninja
	@scripts/strict $(BUILD)

# Installs what is missing, builds, runs every test; ends with "N passed, N failed, N skipped". BOOT=no leaves out those that boot a machine of their own.
check: setup-check
	@$(MAKE) --no-print-directory strict all
	@ninja -C $(BUILD) --quiet unit-programs live-programs
	@tests/run --build $(BUILD) --jobs $(JOBS) --again $(if $(filter no,$(BOOT)),--without live/boot/) $(TESTS)

# Compiles what is installed with clang, too, whose warnings are errors. (make distcheck also runs tests of such a build.)
clang: setup-check
	@[ -e $(BUILD)-clang/build.ninja ] || CC=clang meson setup $(BUILD)-clang -Dwerror=true -Dbuildtype=debug -Db_lto=false >/dev/null
	@ninja -C $(BUILD)-clang --quiet all

# The tests that BOOT=no leaves out, alone.
check-boot: TESTS = live/boot/
check-boot: check

# Unit tests, the long ones with an eighth of their rounds, and golden files: about a minute of processor time, where check takes a quarter of an hour.
quick: setup-check
	@$(MAKE) --no-print-directory strict all
	@ninja -C $(BUILD) --quiet unit-programs
	@tests/run --build $(BUILD) --jobs $(JOBS) --quick $(TESTS)

# On an emulated machine whose kernel has Yama: what may be traced at each of its settings, and what is said where it may not.
check-yama: all
	@scripts/setup yama
	@ninja -C $(BUILD) --quiet live-programs
	@BUILD=$(BUILD) tests/yama/yama.py || [ $$? = 77 ]

golden-update: setup-check all
	@ninja -C $(BUILD) --quiet unit-programs
	@GOLDEN_UPDATE=1 tests/run --build $(BUILD) golden

# Records a small program and shows where its memory went.
demo: setup-demo
	@$(MAKE) --no-print-directory all
	@scripts/demo $(BUILD)

# The pictures of docs/pictures, from real runs.
pictures: all
	@scripts/setup pictures
	@scripts/pictures $(BUILD)

install: all
	@meson setup --reconfigure $(BUILD) -Dprefix=$(PREFIX) >/dev/null
	@ninja -C $(BUILD) --quiet
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

# Removes what the last install from this build directory has written.
uninstall: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet uninstall

# The Python package, for pip: pure Python, one for all versions.
wheel:
	@python3 python/backend.py $(BUILD)

fuzz: setup-check
	@scripts/fuzz --with $(ENGINE) $(SECONDS_EACH)

# Hours of what check does in minutes: hundreds of kill rounds, a thousand rounds of hostile targets (live/strangers/hostile), whole test suites, every stack compared, half an
# hour of long recordings beside 50 busy processes (live/session/long_run), twenty leaks in foreign programs (live/report/seeded), 1,000 looks at a server (live/report/leaking_servers), 200 power cuts (live/boot/power_cuts), all tests
# beside hostile sessions of another user (live/strangers/beside), a boot of an emulated machine (live/boot/emulated); then a thousand attaches to each of some foreign
# programs, which continue where they ended, and a thousand looks for their lost blocks, and a day of pushes, of which a minute takes a second (tests/soak); then ten minutes of a busy session in an open page, whose memory stays flat (tests/viewer/soak.mjs).
soak: setup-check all
	@scripts/setup yama
	@ninja -C $(BUILD) --quiet unit-programs live-programs
	@SOAK=1 tests/run --build $(BUILD) --jobs $(JOBS) live
	@tests/soak --build $(BUILD)
	@BUILD=$(abspath $(BUILD)) node tests/viewer/soak.mjs

# Foreign programs beside an independent counter; writes docs/tested-with.md.
tested-with: setup-check all
	@ninja -C $(BUILD) --quiet unit-programs live-programs
	@tests/tested-with --build $(BUILD)

# First questions about programs, beside heaptrack; writes docs/first-screen.md.
first-screen: setup-check all
	@scripts/setup bench
	@tests/first-screen --build $(BUILD)

bench: all
	@scripts/setup bench
	@bench/run $(BENCH)
	@$(if $(findstring --only,$(BENCH)),,bench/sessions $(filter --quick,$(BENCH)))

# Debian's packages, in $(BUILD)/deb.
deb:
	@scripts/setup deb
	@scripts/deb $(BUILD)/deb

# A folder that runs where it is unpacked, with its libraries beside it: $(BUILD)/dist/xheap-VERSION-x86_64.tar.zst.
dist:
	@scripts/setup dist
	@scripts/dist $(BUILD)/dist

# Tries it in clean roots of glibc 2.31 and 2.41.
check-dist: dist
	@tests/packages/folder $(BUILD)/dist/xheap-*-x86_64.tar.zst $(SUITES)

# What is published of a version, with checksums, once every test of distcheck has passed: $(BUILD)/release.
release:
	@scripts/setup distcheck
	@scripts/setup deb
	@scripts/setup dist
	@scripts/release $(BUILD)/release

# In clean roots of Debian 12 and 13: builds the packages, installs, uses, removes and purges them.
check-deb:
	@scripts/setup deb
	@tests/packages/roots $(SUITES)

# Everything plain, with sanitizers and as release, and the installed tree.
distcheck:
	@scripts/setup distcheck
	@scripts/distcheck

clean:
	@rm -rf $(BUILD)

.PHONY: all setup-check setup-demo strict check check-boot clang quick check-yama golden-update demo pictures install uninstall wheel fuzz soak tested-with first-screen bench deb check-deb dist check-dist release distcheck clean
