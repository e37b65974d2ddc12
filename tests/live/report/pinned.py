#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The finding of `xheap report` about pages that few blocks keep: seeded pinners are named, and none where there is none."""
import os
import pathlib
import subprocess
import sys

from live import expect, run_tests, told, xheap

SOURCE = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static size_t request_bytes, pin_bytes, count, every;
static int is_freed, is_kept;
OUT static void *request(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
OUT static void *remember(size_t n) { char *p = malloc(n); memset(p, 2, n); return p; }
static void *work(void *unused) {
	void **all = malloc(count * sizeof(*all)), **pins = malloc(count * sizeof(*pins));
	size_t pinned = 0;
	for (size_t i = 0; i < count; i++) {
		all[i] = request(request_bytes);
		if (every && i % every == 0) pins[pinned++] = remember(pin_bytes); }
	for (size_t i = 0; i < count && !is_kept; i++) free(all[i]);
	usleep(400000);
	for (size_t i = 0; i < pinned && is_freed; i++) free(pins[i]);
	return unused; }
/* BYTES of a request, of a pin, COUNT of requests, a pin for so many, THREADS, and letters: f, pins are freed at the end; k, requests are kept */
int main(int words, char **word) {
	pthread_t threads[8];
	int n = atoi(word[5]);
	(void)words;
	request_bytes = atoi(word[1]), pin_bytes = atoi(word[2]), count = atoi(word[3]), every = atoi(word[4]);
	is_freed = strchr(word[6], 'f') != NULL, is_kept = strchr(word[6], 'k') != NULL;
	for (int i = 0; i < n; i++) pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
	if (!n) work(NULL);
	return 0; }
"""
# Requests of pages of their own, larger and smaller ones; pins of a few bytes up to some hundred; one thread and several arenas; pins that the program frees at its end.
PINNERS = ((1000, 40, 30000, 8, 0, "-"), (1000, 40, 30000, 8, 0, "f"), (500, 16, 60000, 16, 0, "-"), (3000, 100, 10000, 3, 0, "-"), (200, 24, 150000, 32, 0, "f"),
           (5000, 300, 6000, 2, 0, "-"), (1500, 64, 5000, 4, 4, "-"), (1500, 64, 5000, 4, 4, "f"), (900, 150, 30000, 12, 0, "-"), (2048, 32, 5000, 2, 2, "-"))
# Everything is freed; nothing is; pins beside live requests; too little to speak of.
OTHERS = ((1000, 40, 30000, 0, 0, "-"), (1000, 40, 30000, 0, 0, "k"), (1000, 40, 30000, 8, 0, "k"), (1000, 40, 900, 8, 0, "-"))


def build():
    pathlib.Path("pins.c").write_text(SOURCE)
    subprocess.run([os.environ.get("CC", "cc"), "-w", "-O2", "-pthread", "-Wl,--build-id", "-o", "pins", "pins.c"], check=True)


def finding(words):
    """The finding about pinned pages; None: there is none."""
    xheap("record", "-q", "-o", "pins.xht", "./pins", *words)
    return next((row for row in told("report", "pins.xht")["findings"] if row["kind"] == "pinned"), None)


def pinners():
    """Each is named, and most pages are its."""
    for words in PINNERS:
        found = finding(words)
        expect(found, f"{words}: no finding")
        expect(found["text"].endswith("by pins!remember.") and int(found["text"].split(" %")[0].rpartition(" ")[2]) >= 90, f"{words}: {found['text']}")
        moment = found["command"].split()[-1]
        keepers = told("heap", "pins.xht", "-map", "-at", moment)["keepers"]
        expect(keepers[0]["function"] == "pins!remember", f"{words}: the map at {moment} has {keepers[:2]}")
    return f"{len(PINNERS)}"


def others():
    for words in OTHERS:
        found = finding(words)
        expect(not found, f"{words}: {found}")
    return f"{len(OTHERS)}"


build()
sys.exit(run_tests(pinners, others))
