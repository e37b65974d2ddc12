/* SPDX-License-Identifier: MIT */
/** What tests of the walkers X_is_valid() (src/base/check.h) have together. */
#ifndef XHEAP_TESTS_UNIT_NOTICED_H
#define XHEAP_TESTS_UNIT_NOTICED_H

/** Check that the structure is not valid while the field is wrong, and valid again when it is right. */
#define assert_noticed(field, wrong, is_valid) \
	do { \
		__typeof__(field) kept_ = (field); \
		(field) = (__typeof__(field))(wrong); \
		assert_false(is_valid); \
		(field) = kept_; \
		assert_true(is_valid); \
	} while (0)

#endif
