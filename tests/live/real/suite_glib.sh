#!/bin/sh
# SPDX-License-Identifier: MIT
# GLib's installed tests, one line for each: program, name and result.
set -eu
tests=/usr/libexec/installed-tests/glib
quick="array-test hash strfuncs list slist tree string unicode utf8-validate regex keyfile markup-parse uri spawn-test thread
	thread-pool asyncqueue once slice mem-overflow date base64 checksum cxx memory-input-stream"
whole="$quick sequence queue gvariant spawn-multithreaded mainloop rec-mutex private error environment bytes bookmarkfile cond
	mutex rwlock timer testing type-test signals properties file fileutils io-stream converter-stream g-file-info task thread-pool-slow
	memory-output-stream data-input-stream data-output-stream filter-streams contexts cancellable pollable socket network-address"
programs=$quick
[ -z "${SOAK:-}" ] || programs=$whole
export G_TEST_SRCDIR=$tests G_TEST_BUILDDIR=$tests
for program in $programs; do
	[ -x "$tests/$program" ] || continue
	status=0
	"$tests/$program" --tap >log 2>errors </dev/null || status=$?
	# A test's name may have the seed of its random numbers.
	sed -n "s/seed:[0-9]*/seed/; s/^\(ok\|not ok\) [0-9]* \([^ ]*\).*/$program \1 \2/p" log
	echo "$program: status $status"
done >results
cat results
[ "$(wc -l <results)" -ge 1000 ]
