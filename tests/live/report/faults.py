#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `xheap explain` says about sixty faults of all kinds, in C and C++, release builds: the right stacks, from the trace and the core; about crashes that have nothing to do with the
heap: nothing; and nothing wrong is called certain. Those that end under another allocator are tried with it, too."""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

from live import SOAK, expect, run_tests, told, xheap

FAULTS_C = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
/* ---- what allocates, frees, and misuses ---- */
static void *volatile kept;
OUT static char *make(size_t n) { char *p = malloc(n); memset(p, 1, n); kept = p; return p; }
OUT static char *make_other(size_t n) { char *p = malloc(n); memset(p, 0x71, n); kept = p; return p; }
OUT static void drop(void *p) { free(p); __asm__(""); }
OUT static void misuse(void *p) { free(p); __asm__("nop"); }
OUT static void *resize(void *p, size_t n) { kept = realloc(p, n); return kept; }
OUT static void *misresize(void *p, size_t n) { kept = realloc(p, n); __asm__("nop"); return kept; }
static void *thread_drop(void *p) { drop(p); return NULL; }
static void *thread_misuse(void *p) { misuse(p); return NULL; }
static void in_thread(void *(*run)(void *), void *p) { pthread_t t; pthread_create(&t, NULL, run, p); pthread_join(t, NULL); }
static void work(void) { for (int i = 1; i < 3000; i++) { void *p = malloc(i % 700 + 1); kept = p; free(p); } }
static void fill(void) { for (int i = 0; i < 9; i++) make(24); }
/* ---- a free too many ---- */
static void twice_small(void) { char *p = make(24); drop(p); misuse(p); }
static void twice_large(void) { char *p = make(5000), *q = make(5000); drop(p); misuse(p); drop(q); }
static void twice_top(void) { char *p = make(5000); drop(p); misuse(p); }
static void twice_mapped(void) { char *p = make(1 << 20); drop(p); misuse(p); }
static void twice_thread(void) { char *p = make(3000), *q = make(3000); in_thread(thread_drop, p); misuse(p); drop(q); }
static void twice_in_thread(void) { char *p = make(3000), *q = make(3000); drop(p); in_thread(thread_misuse, p); drop(q); }
static void twice_reused(void) { char *p = make(5000), *q = make(5000); drop(p); p = make(5000); drop(p); misuse(p); drop(q); }
static void twice_fast(void) { char *all[9]; for (int i = 0; i < 9; i++) all[i] = make(40); for (int i = 0; i < 8; i++) drop(all[i]); misuse(all[7]); }
static void twice_later(void) { char *p = make(2500), *q = make(2500); drop(p); for (int i = 0; i < 20; i++) drop(make(30)); misuse(p); drop(q); }
OUT static char *make_aligned(void) { void *p = NULL; posix_memalign(&p, 256, 3000); kept = p; return p; }
static void twice_aligned(void) { char *p = make_aligned(), *q = make(40); drop(p); misuse(p); drop(q); }
OUT static char *make_copy(void) { return strdup("the text of a copy"); }
static void twice_copy(void) { char *p = make_copy(); drop(p); misuse(p); }
OUT static char *make_zero(void) { char *p = calloc(50, 100); kept = p; return p; }
static void twice_zero(void) { char *p = make_zero(), *q = make(40); drop(p); misuse(p); drop(q); }
static void twice_moved(void) { char *p = make(2000), *q = make(2000), *r = resize(p, 90000); misuse(p); drop(q); drop(r); }
static void twice_resized(void) { char *p = make(5000), *q = make(5000); drop(p); misresize(p, 100000); drop(q); }
static void twice_array(void) { char *p = make(24); drop(p); kept = reallocarray(p, 1000, 100); misuse(p); }
static void exit_misuse(int status, void *p) { misuse(p); }
static void twice_exit(void) { char *p = make(24); on_exit(exit_misuse, p); drop(p); }
OUT static FILE *make_stream(void) { return fopen("/dev/null", "r"); }
OUT static void drop_stream(FILE *f) { fclose(f); __asm__(""); }
OUT static void misuse_stream(FILE *f) { fclose(f); __asm__("nop"); }
static void twice_stream(void) { FILE *f = make_stream(); drop_stream(f); misuse_stream(f); }
OUT static DIR *make_directory(void) { return opendir("."); }
OUT static void drop_directory(DIR *d) { closedir(d); __asm__(""); }
OUT static void misuse_directory(DIR *d) { closedir(d); __asm__("nop"); }
static void twice_directory(void) { DIR *d = make_directory(); drop_directory(d); misuse_directory(d); }
OUT static char *make_line(void) { char *line = NULL; size_t n = 0; FILE *f = fopen("/etc/passwd", "r"); kept = (void *)getline(&line, &n, f); fclose(f); return line; }
static void twice_line(void) { char *p = make_line(); drop(p); misuse(p); }
static void twice_forked(void) { char *p = make(24); int status; if (!fork()) { drop(p); misuse(p); _exit(0); } wait(&status); signal(WTERMSIG(status), SIG_DFL); }
/* ---- a free of what was not given ---- */
static void inside(void) { char *p = make(5000); misuse(p + 16); }
static void inside_odd(void) { char *p = make(500); misuse(p + 3); }
static void inside_mapped(void) { char *p = make(1 << 20); misuse(p + 4096); }
static void inside_late(void) { char *p = make(500); misuse(p + 496); }
static void inside_resized(void) { char *p = make(500); misresize(p + 8, 1000); }
static void foreign_stack(void) { char own[64]; kept = own; misuse(own + 16); }
static void foreign_data(void) { static long own[64]; misuse(own + 2); }
static void foreign_text(void) { misuse((void *)"a literal of the program, which is long"); }
static void foreign_code(void) { misuse((void *)(uintptr_t)twice_small); }
static void foreign_wild(void) { misuse((void *)0x123456789010); }
static void foreign_small(void) { misuse((void *)0x4d2); }
static void foreign_environment(void) { misuse(getenv("PATH")); }
static void foreign_mapped(void) { char *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); misuse(p + 64); }
static void foreign_room(void) { char *p = __builtin_alloca(100); memset(p, 0, 100); kept = p; misuse(p); }
static void foreign_before(void) { char *p = make(500); memset(p, 0, 500); misuse(p - 16); }
/* ---- writes beyond ---- */
OUT static void overrun(char *p, size_t n) { memset(p, 0x41, n); }
static void beyond_next(void) { char *p = make(24), *q = make_other(1500); fill(); overrun(p, 40); misuse(q); }
static void beyond_one(void) { char *p = make(24), *q = make_other(1500); fill(); overrun(p, 25); misuse(q); }
static void beyond_top(void) { char *p = make(2000); overrun(p, 2064); make_other(100000); }
static void beyond_free(void) { char *p = make(1100), *q = make_other(1500); fill(); drop(q); overrun(p, 1144); make_other(9000); }
static void beyond_resized(void) { char *p = make(1000), *q = make_other(1000); fill(); overrun(p, 1040); (void)q; misresize(p, 3000); }
static void beyond_own(void) { char *p = make(1000); fill(); memset(p - 8, 0x41, 8); misuse(p); }
static void beyond_text(void) { char *p = make(10), *q = make_other(1500); fill(); strcpy(p, "a text that is far too long for the block it is copied to"); misuse(q); }
static void beyond_later(void) { char *p = make(3000), *q = make_other(3000); fill(); overrun(p, 3032); work(); misuse(q); }
OUT static void overrun_all(char *p) { for (long i = 0; i < 1 << 30; i++) ((volatile char *)p)[i] = 1; }
static void beyond_mapped(void) { char *p = make(3 << 20); overrun_all(p); }
/* ---- writes after the free ---- */
static void after_cached(void) { char *p = make(40), *q = make_other(40); drop(q); drop(p); overrun(p, 16); make_other(40); make_other(40); }
static void after_sorted(void) { char *p = make(3000); fill(); drop(p); overrun(p, 32); make_other(9000); make_other(3000); make_other(3000); }
#define TRIAL(name) {#name, name}
static const struct { const char *name; void (*run)(void); } trials[] = {
	TRIAL(twice_small), TRIAL(twice_large), TRIAL(twice_top), TRIAL(twice_mapped), TRIAL(twice_thread), TRIAL(twice_in_thread), TRIAL(twice_reused), TRIAL(twice_fast), TRIAL(twice_later),
	TRIAL(twice_aligned), TRIAL(twice_copy), TRIAL(twice_zero), TRIAL(twice_moved), TRIAL(twice_resized), TRIAL(twice_array), TRIAL(twice_exit), TRIAL(twice_stream), TRIAL(twice_directory), TRIAL(twice_line),
	TRIAL(twice_forked), TRIAL(inside), TRIAL(inside_odd), TRIAL(inside_mapped), TRIAL(inside_late), TRIAL(inside_resized), TRIAL(foreign_stack), TRIAL(foreign_data), TRIAL(foreign_text),
	TRIAL(foreign_code), TRIAL(foreign_wild), TRIAL(foreign_small), TRIAL(foreign_environment), TRIAL(foreign_mapped), TRIAL(foreign_room), TRIAL(foreign_before), TRIAL(beyond_next), TRIAL(beyond_one),
	TRIAL(beyond_top), TRIAL(beyond_free), TRIAL(beyond_resized), TRIAL(beyond_own), TRIAL(beyond_text), TRIAL(beyond_later), TRIAL(beyond_mapped), TRIAL(after_cached), TRIAL(after_sorted)};
int main(int count, char **words) {
	(void)count;
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (!strcmp(trials[i].name, words[1]))
			trials[i].run();
	return 0; }
"""
FAULTS_CC = r"""
#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#define OUT __attribute__((noipa))
/* ---- what allocates, frees, and misuses ---- */
struct part { virtual ~part() {} long first[3]; };
struct whole_base { virtual ~whole_base() {} long second[3]; };
struct plain_base { long third[3]; };
struct shape { virtual ~shape() {} virtual int area() { return 1; } long rest[4]; };
struct square : shape { int area() override { return 2; } };
struct counted { long value = 7; ~counted() { value = 0; } };
struct both : whole_base, plain_base { };
struct node { node *next; long value; char text[40]; };
typedef void (*callback)(int);
struct holder { callback run; long rest[9]; };
static void *volatile kept;
OUT shape *make_shape() { return new square; }
OUT void drop_shape(shape *s) { delete s; __asm__("nop"); }
OUT int misuse_shape(shape *s) { return s->area() + 1; }
OUT void misuse_delete(shape *s) { delete s; __asm__("nop; nop"); }
OUT long *make_longs() { long *p = new long[500]; kept = p; return p; }
OUT void drop_longs(long *p) { delete[] p; __asm__("nop"); }
OUT void misuse_longs(long *p) { delete[] p; __asm__("nop; nop"); }
OUT counted *make_counted() { counted *p = new counted[40]; kept = p; return p; }
OUT void misuse_counted(counted *p) { delete p; __asm__("nop"); }
OUT counted *make_one() { counted *p = new counted; kept = p; return p; }
OUT plain_base *make_both() { both *b = new both; kept = b; return b; }
OUT void misuse_both(plain_base *b) { delete b; __asm__("nop"); }
OUT node *make_node() { node *n = (node *)malloc(sizeof(node)); n->next = n; n->value = 7; return n; }
OUT node *make_other() { node *n = (node *)malloc(sizeof(node)); memset(n, 0x71, sizeof(node)); return n; }
OUT void drop_node(node *n) { free(n); __asm__("nop"); }
OUT long misuse_node(node *n) { return n->next->value; }
OUT char *make_large() { char *p = (char *)malloc(1 << 20); memset(p, 1, 1 << 20); return p; }
OUT void drop_large(char *p) { free(p); __asm__("nop; nop"); }
OUT int misuse_large(char *p) { return p[5000]; }
OUT void nothing(int) {}
OUT holder *make_holder() { holder *h = (holder *)malloc(sizeof(holder)); h->run = nothing; return h; }
OUT void drop_holder(holder *h) { free(h); __asm__("nop; nop; nop"); }
OUT void misuse_holder(holder *h) { h->run(1); __asm__("nop"); }
OUT std::vector<long> *make_vector() { return new std::vector<long>(300000, 5); }
OUT long misuse_element(const long *p) { return *p; }
OUT void drop_vector(std::vector<long> &v) { v.resize(900000); __asm__("nop"); }
OUT void misuse_text(const char *p) { kept = (void *)(long)p[70000]; }
OUT std::string make_text() { return std::string(3000000, 'x'); }
OUT void drop_text(std::string &s) { std::string().swap(s); __asm__("nop"); }
OUT void misuse_string(std::string *s) { delete s; __asm__("nop"); }
OUT void misuse_unique(std::unique_ptr<shape> p) { p.reset(); __asm__("nop"); }
OUT void misuse_vector(std::vector<long> *v) { delete v; __asm__("nop"); }
OUT void misuse_data(std::vector<long> *v) { free(v->data()); __asm__("nop"); }
OUT void end_vector(std::vector<long> *v) { delete v; __asm__("nop; nop"); }
struct owner { shape *mine; explicit owner(shape *s) : mine(s) {} ~owner() { drop_shape(mine); } };
OUT long misuse_list(std::list<shape *> &l) { long sum = 0; for (auto *s : l) sum += misuse_shape(s); return sum; }
OUT void misuse_map(std::map<int, shape *> &m) { kept = (void *)(long)misuse_shape(m.at(1)); }
OUT char *make_moved() { char *p = (char *)malloc(2 << 20); memset(p, 1, 2 << 20); return p; }
OUT char *drop_moved(char *p) { p = (char *)realloc(p, 200 << 20); return p; }
OUT void misuse_moved(char *p) { p[70000] = 2; }
OUT void misuse_write(node *n) { n->next->value = 9; }
/* ---- */
static void delete_twice() { shape *s = make_shape(); drop_shape(s); misuse_delete(s); }
static void array_twice() { long *p = make_longs(), *q = make_longs(); drop_longs(p); misuse_longs(p); drop_longs(q); }
static void unique_twice() { shape *s = make_shape(); drop_shape(s); misuse_unique(std::unique_ptr<shape>(s)); }
static void shared_twice() { long *p = make_longs(); { std::shared_ptr<long> one(p, drop_longs), two(p, misuse_longs); two.swap(one); std::shared_ptr<long>().swap(two); make_longs(); } }
static void copy_twice() { owner a(make_shape()); owner b(a); }
static void data_twice() { std::vector<long> *v = make_vector(); misuse_data(v); end_vector(v); }
static void array_as_one() { counted *p = make_counted(); misuse_counted(p); }
static void base_inside() { plain_base *b = make_both(); misuse_both(b); }
static void string_on_stack() { std::string s(100, 'x'); kept = &s; misuse_string((std::string *)kept); }
static void vector_in_data() { static std::vector<long> v; misuse_vector(&v); }
static void virtual_after() { shape *s = make_shape(); drop_shape(s); kept = (void *)(long)misuse_shape(s); }
static void list_after() { node *m = make_node(), *n = make_node(); drop_node(m); drop_node(n); kept = (void *)misuse_node(n); }
static void large_after() { char *p = make_large(); drop_large(p); kept = (void *)(long)misuse_large(p); }
static void called_after() { holder *m = make_holder(), *h = make_holder(); drop_holder(m); drop_holder(h); misuse_holder(h); }
static void thread_after() { shape *s = make_shape(); std::thread([&] { drop_shape(s); }).join(); kept = (void *)(long)misuse_shape(s); }
static void poisoned_after() { node *n = make_node(); drop_node(n); memset(n, 0x6b, 40); kept = (void *)misuse_node(n); }
static void again_after() { node *n = make_node(); drop_node(n); make_other(); kept = (void *)misuse_node(n); }
static void vector_after() { std::vector<long> *v = make_vector(); const long *p = &(*v)[5]; drop_vector(*v); kept = (void *)misuse_element(p); }
static void text_after() { std::string s = make_text(); const char *p = s.c_str(); drop_text(s); misuse_text(p); }
static void element_after() { std::list<shape *> l{make_shape(), make_shape()}; drop_shape(l.back()); misuse_list(l); }
static void map_after() { std::map<int, shape *> m{{1, make_shape()}}; drop_shape(m[1]); misuse_map(m); }
static void moved_after() { char *p = make_moved(), *q = drop_moved(p); misuse_moved(p); free(q); }
static void write_after() { node *m = make_node(), *n = make_node(); drop_node(m); drop_node(n); misuse_write(n); }
#define TRIAL(name) {#name, name}
static const struct { const char *name; void (*run)(); } trials[] = {
	TRIAL(delete_twice), TRIAL(array_twice), TRIAL(unique_twice), TRIAL(shared_twice), TRIAL(copy_twice), TRIAL(data_twice), TRIAL(array_as_one), TRIAL(base_inside), TRIAL(string_on_stack), TRIAL(vector_in_data),
	TRIAL(virtual_after), TRIAL(list_after), TRIAL(large_after), TRIAL(called_after), TRIAL(thread_after), TRIAL(poisoned_after), TRIAL(again_after), TRIAL(vector_after), TRIAL(text_after), TRIAL(element_after),
	TRIAL(map_after), TRIAL(moved_after), TRIAL(write_after)};
int main(int, char **words) {
	for (auto &trial : trials)
		if (!strcmp(trial.name, words[1]))
			trial.run();
	return 0; }
"""
OTHERS = r"""
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define OUT __attribute__((noipa))
static void *volatile kept;
/* Blocks that live, and that were freed, with pointers to them wherever they happen to stay. */
OUT static void *stir(void) { void *all[64]; for (int i = 0; i < 64; i++) { all[i] = malloc(i * 40 + 1); memset(all[i], i, i * 40 + 1); } for (int i = 0; i < 64; i += 2) free(all[i]); return all[9]; }
OUT static int deep(int n) { volatile char room[1000]; room[0] = (char)n; return deep(n + 1) + room[0]; }
static void null_read(void) { kept = (void *)(long)*(volatile int *)0; }
static void null_write(void) { *(volatile int *)0 = 1; }
static void null_member(void) { *(volatile int *)0x48 = 1; }
static void null_call(void) { ((void (*)(void))kept)(); }
static void wild_read(void) { kept = (void *)(long)*(volatile int *)0x123456789000; }
static void wild_call(void) { ((void (*)(void))0x414141414141)(); }
static void odd_address(void) { kept = (void *)(long)*(volatile int *)0x4141414141414141; }
static void constant_write(void) { *(volatile char *)"a constant" = 'b'; }
static void divide(void) { volatile int zero = 0; kept = (void *)(long)(100 / zero); }
static void trap(void) { __builtin_trap(); }
static void aborted(void) { abort(); }
static void asserted(void) { assert(kept == (void *)1); }
static void raised(void) { raise(SIGSEGV); }
static void killed(void) { kill(getpid(), SIGABRT); }
static void deep_stack(void) { kept = (void *)(long)deep(0); }
OUT static void smash(char *p) { memset(p, 0x41, 100); }
__attribute__((noipa, optimize("stack-protector-all"))) static void smashed(void) { char own[16]; smash(own); kept = own; }
static void behind_file(void) { int fd = open("empty", O_RDWR | O_CREAT, 0600); char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); *(volatile char *)p = 1; }
static void protected_page(void) { char *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); *(volatile char *)p = 1; }
static void unmapped_page(void) { char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(p, 4096); *(volatile char *)p = 1; }
static void *thread_null(void *p) { *(volatile int *)8 = 1; return p; }
static void in_thread(void) { pthread_t t; pthread_create(&t, NULL, thread_null, NULL); pthread_join(t, NULL); }
static void wrong_value(void) { long *p = stir(); p[1] = 0x515151515151; kept = (void *)(long)**(volatile int **)(p + 1); }
static void data_run(void) { static char data[16] = {0x90, 0xc3}; ((void (*)(void))data)(); }
static void bad_call(void) { syscall(-1); __asm__ volatile("hlt"); }
#define TRIAL(name) {#name, name}
static const struct { const char *name; void (*run)(void); } trials[] = {
	TRIAL(null_read), TRIAL(null_write), TRIAL(null_member), TRIAL(null_call), TRIAL(wild_read), TRIAL(wild_call), TRIAL(odd_address), TRIAL(constant_write), TRIAL(divide), TRIAL(trap), TRIAL(aborted),
	TRIAL(asserted), TRIAL(raised), TRIAL(killed), TRIAL(deep_stack), TRIAL(smashed), TRIAL(behind_file), TRIAL(protected_page), TRIAL(unmapped_page), TRIAL(in_thread), TRIAL(wrong_value), TRIAL(data_run),
	TRIAL(bad_call)};
int main(int count, char **words) {
	(void)count;
	stir();
	for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++)
		if (!strcmp(trials[i].name, words[1]))
			trials[i].run();
	return 0; }
"""
# The fault, and the functions that made it, allocated the block and freed it; None: there is none.
TWICE, INSIDE, FOREIGN = ("double_free", "misuse", "make", "drop"), ("interior_free", "misuse", "make", None), ("foreign_free", "misuse", None, None)
BEYOND, USED = ("beyond", None, "make", None), ("use_after_free", "misuse", "make", "drop")
FAULTS = {
    **dict.fromkeys(("twice_small", "twice_large", "twice_top", "twice_mapped", "twice_thread", "twice_in_thread", "twice_reused", "twice_fast", "twice_later", "twice_aligned", "twice_copy", "twice_zero",
                     "twice_array", "twice_exit", "twice_stream", "twice_directory", "twice_line", "twice_forked", "array_twice", "shared_twice"), TWICE),
    "twice_moved": ("double_free", "misuse", "make", "resize"), "twice_resized": ("double_free", "misresize", "make", "drop"), "data_twice": ("double_free", "end_vector", "make_vector", "misuse_data"),
    **dict.fromkeys(("inside", "inside_odd", "inside_mapped", "inside_late", "array_as_one", "base_inside"), INSIDE), "inside_resized": ("interior_free", "misresize", "make", None),
    **dict.fromkeys(("foreign_stack", "foreign_data", "foreign_text", "foreign_code", "foreign_wild", "foreign_small", "foreign_environment", "foreign_mapped", "foreign_room", "foreign_before",
                     "string_on_stack", "vector_in_data"), FOREIGN),
    **dict.fromkeys(("beyond_next", "beyond_one", "beyond_top", "beyond_free", "beyond_resized", "beyond_text", "beyond_later"), BEYOND),
    "beyond_own": ("before", None, "make", None), "beyond_mapped": ("use_beyond", "overrun_all", "make", None), "after_cached": ("freed", None, "make", "drop"),
    "after_sorted": ("use_after_free", "make_other", "make", "drop"),
    # The virtual function of a destructor is read from the freed block.
    **dict.fromkeys(("delete_twice", "unique_twice", "virtual_after", "list_after", "large_after", "called_after", "thread_after", "poisoned_after", "vector_after", "text_after", "element_after", "map_after",
                     "moved_after", "write_after"), USED), "copy_twice": ("use_after_free", "drop_shape", "make", "drop"), "again_after": ("use_after_free", "misuse", ("make_other", "make_node"), None)}
DAMAGES = ("beyond", "before", "freed")
ALLOCATORS = [path for path in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/lib*malloc*.so.[24]")) if re.search("/lib(jemalloc|mimalloc|tcmalloc_minimal).so", path)]
RIGHT_PERCENT, OTHERS_PERCENT, CRASHES_LEAST, CRASHES_LEAST_IN_C = 95, 90, 45, 30
RELEASE = ["-fno-optimize-sibling-calls", "-fno-builtin-malloc", "-fno-builtin-free", "-Wl,--build-id"]


def trials(source):
    return [name for name in re.findall(r"TRIAL\((\w+)\)", source) if name != "name"]


def build(name, suffix, compiler, source):
    pathlib.Path(name + suffix).write_text(source)
    subprocess.run([compiler, "-w", "-O2", "-pthread", *RELEASE, "-o", name, name + suffix], check=True)


def record(program, trial, allocator=None):
    """Whether a process has crashed; then its trace is last.xht, and its core last.core."""
    for core in glob.glob("core*"):
        os.unlink(core)
    preload = ["env", f"LD_PRELOAD={allocator}"] if allocator else []
    subprocess.run(["sh", "-c", "ulimit -c unlimited && exec \"$@\"", "sh", os.environ["XHEAP"], "record", "-q", "-o", "last.xht", *preload, f"./{program}", trial], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    cores = glob.glob("core*")
    expect(len(cores) < 2, f"{trial}: the cores {cores}")
    if cores:
        os.rename(cores[0], "last.core")
    return bool(cores)


def has(point, name):
    """Whether a function of the stack begins with the name, or with one of them."""
    return not name or any((frame.get("symbol") or "").startswith(name) for frame in (point or {}).get("stack", []))


def accusations(answer):
    """Each fault that is named: what, how sure, its stack, its block."""
    core = answer.get("core", {})
    found = [(call["fault"], call["certainty"], call if call["stack"] else core, call.get("block", {})) for call in answer["calls"] if call["fault"] != "none"]
    if "damage" in core:
        found.insert(0, (core["damage"]["kind"], core["damage"]["certainty"], core, core["damage"]["block"]))
    for key in ("use_after_free", "use_beyond"):
        if key in core:
            found.insert(0, (key, core[key]["certainty"], core, core[key]["block"]))
    return found


def is_right(trial, answer):
    """Whether one of the first two faults that are named is the right one, with its stacks."""
    kind, user, maker, dropper = FAULTS[trial]
    frees = [call for call in answer["calls"] if call.get("freed_again")]
    return any(what == kind and has(stack, user) and (not maker or has(block.get("allocated"), maker)) and (not dropper or has(block.get("ended"), dropper) or any(has(free, dropper) for free in frees))
               for what, _, stack, block in accusations(answer)[:2])


def check_program(program, source, allocator):
    crashed, missed = 0, []
    for trial in trials(source):
        if not record(program, trial, allocator):
            continue
        crashed += 1
        answers = told("explain", "last.xht")["of_end"], told("explain", "last.core", "-trace", "last.xht")["of_end"]
        for answer in answers:
            wrong = [found[:2] for found in accusations(answer) if found[1] == "certain" and found[0] != FAULTS[trial][0]]
            expect(not wrong, f"{trial}: {wrong}")
        if not is_right(trial, answers[1]):
            missed.append(trial)
        said = xheap("explain", "last.core", "-trace", "last.xht")
        expect(trial in missed or re.search("^(certain|likely|unknown): ", said, re.MULTILINE), f"{trial}: {said}")
    return crashed, missed


def check_all(allocator=None):
    c, more = (check_program(program, source, allocator) for program, source in (("faults_c", FAULTS_C), ("faults_cc", FAULTS_CC)))
    return c[0] + more[0], c[1] + more[1]


def faults():
    """Under glibc."""
    crashed, missed = check_all()
    expect(crashed >= CRASHES_LEAST, f"only {crashed} of {len(FAULTS)} crash")
    expect(100 * (crashed - len(missed)) >= RIGHT_PERCENT * crashed, f"{len(missed)} of {crashed} have not their stacks: {missed}")
    return f"{crashed - len(missed)} of {crashed} crashes of {len(FAULTS)} faults; not {', '.join(missed)}"


def linked():
    """Under another release of glibc. The C++ library of this machine may need a newer one."""
    before, behind = json.loads(os.environ["LINKING"])
    pathlib.Path("faults_c.c").write_text(FAULTS_C)
    subprocess.run([*before, *RELEASE, "-o", "faults_c", "faults_c.c", *behind], check=True)
    crashed, missed = check_program("faults_c", FAULTS_C, None)
    expect(crashed >= CRASHES_LEAST_IN_C, f"only {crashed} of {len(trials(FAULTS_C))} crash")
    expect(100 * (crashed - len(missed)) >= RIGHT_PERCENT * crashed, f"{len(missed)} of {crashed} have not their stacks: {missed}")
    return f"{crashed - len(missed)} of {crashed} crashes of {len(trials(FAULTS_C))} faults; not {', '.join(missed)}"


def allocators():
    """Under others, most of which take most faults without a word."""
    said = []
    for allocator in ALLOCATORS:
        crashed, missed = check_all(allocator)
        said.append(f"{os.path.basename(allocator)}: {crashed - len(missed)} of {crashed}; not {', '.join(missed)}")
        expect(100 * (crashed - len(missed)) >= OTHERS_PERCENT * crashed, said[-1])
    return "; ".join(said)


def others():
    """What has nothing to do with the heap is not blamed on it, whether blocks and stale pointers are about or not."""
    count = 0
    for allocator in (None, *ALLOCATORS):
        for trial in trials(OTHERS)[::1 if not allocator or SOAK else 4]:
            expect(record("others", trial, allocator), f"{trial} has not crashed")
            for words in (("last.xht",), ("last.core", "-trace", "last.xht")):
                found = [what for what in accusations(told("explain", *words)["of_end"]) if what[1] != "unknown"]
                expect(not found, f"{trial}, {allocator}: {found}")
                said = xheap("explain", *words)
                expect(re.search("show no|^unknown: ", said, re.MULTILINE) and not re.search("^(certain|likely): ", said, re.MULTILINE), f"{trial}, {allocator}: {said}")
            count += 1
    return f"{count}"


core_pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
if "/" in core_pattern or not core_pattern.startswith("core"):
    print("cores do not go to the directory of the process: /proc/sys/kernel/core_pattern")
    sys.exit(77)
if "LINKING" in os.environ:
    sys.exit(run_tests(linked))
build("faults_c", ".c", os.environ.get("CC", "cc"), FAULTS_C)
build("faults_cc", ".cc", "c++", FAULTS_CC)
build("others", ".c", os.environ.get("CC", "cc"), OTHERS)
sys.exit(run_tests(faults, allocators, others))
