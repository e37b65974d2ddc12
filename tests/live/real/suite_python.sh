#!/bin/sh
# SPDX-License-Identifier: MIT
# CPython's own tests, one line for each: name and result.
set -eu
quick="test_json test_dict test_list test_re test_struct test_ctypes test_threading_local test_zlib test_fork1 test_posix"
whole="$quick test_os test_subprocess test_signal test_threading test_thread test_sqlite3 test_pickle test_io test_unicode
	test_collections test_generators test_coroutines test_gc test_weakref test_memoryview test_mmap test_resource test_select
	test_socket test_ssl test_hashlib test_decimal test_concurrent_futures test_asyncio test_lzma test_bz2 test_xml_etree"
tests=$quick
[ -z "${SOAK:-}" ] || tests=$whole
/usr/bin/python3 -m test -v $tests >log 2>&1 || echo "status $?"
sed -n 's/^\(test_[^ ]* ([^)]*)\).* \.\.\. \(ok\|FAIL\|ERROR\|skipped.*\|expected failure\).*/\1 \2/p; s/^Tests result: /result: /p' log | sort >results
cat results
[ "$(wc -l <results)" -ge 500 ]
