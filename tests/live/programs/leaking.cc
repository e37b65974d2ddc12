// SPDX-License-Identifier: MIT
// Ways to lose blocks and to keep them, a function each: leaking TRIAL runs one. tests/live/report/leaks.py compares what is found then.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#ifdef CRASHING
static void exit_or_crash(int) { abort(); }
#define exit exit_or_crash
#endif
#define OWN extern "C" __attribute__((noipa))

struct node {
	node *volatile next, *volatile other;
	char room[48];
};
static void *volatile kept, *volatile kept2;
static volatile uintptr_t hidden;
static void *volatile table[64];
static thread_local void *volatile of_thread;
static struct __attribute__((packed)) {
	char odd;
	void *volatile pointer;
} packed_word;

OWN void *own_block(size_t size)
{
	char *block = (char *)malloc(size);
	memset(block, 0, size);
	return block;
}

OWN node *own_node(node *next)
{
	node *made = (node *)calloc(1, sizeof(node));
	made->next = next;
	return made;
}

// Dead words below the stack pointer, and in registers that a call may change, would keep blocks by chance.
OWN void own_clean()
{
	volatile char room[16384];
	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
	__asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
}

static pthread_barrier_t barrier;

static void thread_run(void *(*run)(void *), bool is_joined)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, NULL);
	if (is_joined)
		pthread_join(thread, NULL);
	else
		pthread_barrier_wait(&barrier);
}

OWN void own_wait_for_ever()
{
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

struct trial {
	const char *name;
	void (*run)();
};
static std::vector<trial> &trials()
{
	static std::vector<trial> all;
	return all;
}
#define TRIAL(name) \
	OWN void trial_##name(); \
	static const bool is_in_##name = (trials().push_back({#name, trial_##name}), true); \
	OWN void trial_##name()

// ---- lost ----

TRIAL(one) { own_block(100); }
TRIAL(many) { for (int i = 0; i < 1000; i++) own_block(100); }
TRIAL(list) { own_node(own_node(own_node(NULL))); }
TRIAL(circle) { node *a = own_node(NULL); a->next = own_node(a); }
TRIAL(itself) { node *a = own_node(NULL); a->next = a; }
TRIAL(tree) { node *a = own_node(own_node(NULL)); a->other = own_node(own_node(NULL)); a->next->other = a->other; }
TRIAL(large) { own_block(1 << 20); }
TRIAL(nothing_in_it) { own_block(0); }
TRIAL(overwritten) { kept = own_block(50); kept = own_block(60); }
TRIAL(hidden_by_xor) { hidden = (uintptr_t)own_block(70) ^ 0x5555555555555555; }
TRIAL(unaligned) { packed_word.pointer = own_block(80); }
TRIAL(behind_the_end) { kept = (char *)own_block(96) + 96; }
TRIAL(only_of_freed) { node *a = own_node(own_node(NULL)); free(a); }
TRIAL(resized) { kept = realloc(own_block(100), 100000); kept = NULL; }
TRIAL(aligned) { kept = aligned_alloc(4096, 8192); kept = NULL; void *p; posix_memalign(&p, 64, 100); }
TRIAL(copies) { for (int i = 0; i < 5; i++) strdup("a text that is lost"); }
TRIAL(of_ended_thread) { thread_run([](void *) -> void * { of_thread = own_block(90); own_block(91); return NULL; }, true); }
TRIAL(of_live_thread) { thread_run([](void *) -> void * { own_block(93); own_clean(); own_wait_for_ever(); return NULL; }, false); }
TRIAL(line) { FILE *file = fopen("/proc/self/maps", "re"); char *text = NULL; size_t size = 0; getline(&text, &size, file); fclose(file); text = NULL; }
TRIAL(of_function_that_ends) { auto owner = new std::vector<std::string>(10, "a text that does not fit into the object itself"); owner->reserve(50); }
TRIAL(tree_of_library) { auto map = new std::map<int, std::string>; for (int i = 0; i < 20; i++) (*map)[i] = std::string(100, 'x'); }
TRIAL(shared_circle)
{
	struct owner { std::shared_ptr<owner> other; char room[40]; };
	auto a = std::make_shared<owner>();
	auto b = std::make_shared<owner>();
	a->other = b;
	b->other = a;
}
TRIAL(of_exit) { atexit([] { own_block(110); own_clean(); }); }
TRIAL(some) { for (int i = 0; i < 40; i++) table[i] = own_block(33); for (int i = 0; i < 40; i += 3) table[i] = NULL; }

// ---- kept ----

TRIAL(by_data) { kept = own_block(100); static void *volatile own; own = own_block(101); }
TRIAL(by_list) { for (int i = 0; i < 100; i++) kept = own_node((node *)kept); }
TRIAL(by_inside) { kept = (char *)own_block(100) + 17; kept2 = (char *)own_node(own_node(NULL)) + 63; }
TRIAL(by_thread_local) { of_thread = own_block(100); }
TRIAL(by_live_thread) { thread_run([](void *) -> void * { of_thread = own_block(90); void *volatile here = own_block(91); own_wait_for_ever(); return here; }, false); }
TRIAL(by_key) { pthread_key_t key; pthread_key_create(&key, NULL); pthread_setspecific(key, own_block(100)); }
TRIAL(by_many_keys) { pthread_key_t key; for (int i = 0; i < 100; i++) { pthread_key_create(&key, NULL); pthread_setspecific(key, own_block(100)); } }
TRIAL(by_stack) { void *volatile here = own_block(100); exit(0); kept = here; }
TRIAL(by_environment) { putenv((char *)strcpy((char *)own_block(50), "XHEAP_LEAKS=1")); }
TRIAL(by_file) { FILE *file = fopen("/dev/null", "we"); setvbuf(file, (char *)own_block(4096), _IOFBF, 4096); }
TRIAL(by_large) { kept = own_block(1 << 20); ((void **)kept)[100000] = own_block(100); }
TRIAL(by_mapping) { void **memory = (void **)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); memory[5] = own_block(100); kept = memory; }
TRIAL(freed_at_exit) { kept = own_block(100); atexit([] { free(kept); }); }
TRIAL(freed_by_destructor) { static std::vector<std::string> own(10, "a text that does not fit into the object itself"); }
TRIAL(array) { struct with_end { ~with_end() { kept2 = this; } char room[20]; }; kept = new with_end[10]; kept2 = NULL; }
TRIAL(empty_array) { struct with_end { ~with_end() { kept2 = this; } char room[20]; }; volatile size_t none = 0; kept = new with_end[none]; }
TRIAL(second_base) { struct one { virtual ~one() {} long a[4]; }; struct two { virtual ~two() {} long b[4]; }; struct both : one, two {}; kept = static_cast<two *>(new both); }
TRIAL(by_library) { kept = dlopen("libm.so.6", RTLD_NOW); kept = NULL; }
TRIAL(exit_of_thread) { kept = own_block(100); thread_run([](void *) -> void * { own_block(120); own_clean(); exit(0); }, true); }

// ---- several processes ----

TRIAL(child) { own_block(130); if (!fork()) { own_block(131); return; } wait(NULL); }
TRIAL(child_keeps) { kept = own_node(NULL); if (!fork()) { ((node *)kept)->next = own_node(own_node(NULL)); return; } wait(NULL); }

int main(int count, char **arguments)
{
	pthread_barrier_init(&barrier, NULL, 2);
	for (const trial &one : trials())
		if (count > 1 && !strcmp(one.name, arguments[1])) {
			one.run();
			own_clean();
			exit(0);
		}
	return 3;
}
