# SPDX-License-Identifier: MIT
# A thin front to meson: `make` builds into build/, which runs in place as build/xheap.
BUILD ?= build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@scripts/setup build
	@meson setup $(BUILD) $(MESON_OPTIONS)

.PHONY: all
