/* SPDX-License-Identifier: MIT */
#include "hook/entry_names.h"

#include <pthread.h>
#include <string.h>

#define HEAP(name, function, family) \
	{ \
		name, FUNCTION_##function, FAMILY_##family, 0 \
	}
#define SYSTEM(name, extra) \
	{ \
		name, HOOK_##extra, FAMILY_SYSTEM, 0 \
	}
#define MARK(name, mark) \
	{ \
		name, MARK_##mark, FAMILY_MARK, 0 \
	}
#define MARK_OF(name, mark, family) \
	{ \
		name, MARK_##mark, FAMILY_MARK, FAMILY_##family \
	}

/* The names that every allocator with a prefix uses. */
#define COMMON(prefix, family) \
	HEAP(prefix "malloc", MALLOC, family), HEAP(prefix "calloc", CALLOC, family), \
		HEAP(prefix "realloc", REALLOC, family), HEAP(prefix "reallocarray", REALLOCARRAY, family), \
		HEAP(prefix "free", FREE, family), HEAP(prefix "cfree", CFREE, family), \
		HEAP(prefix "aligned_alloc", ALIGNED_ALLOC, family), HEAP(prefix "memalign", MEMALIGN, family), \
		HEAP(prefix "posix_memalign", POSIX_MEMALIGN, family), HEAP(prefix "valloc", VALLOC, family), \
		HEAP(prefix "pvalloc", PVALLOC, family)

/* jemalloc's own interface: sizes first, then flags. */
#define EXTENDED(prefix, family) \
	HEAP(prefix "mallocx", MALLOCX, family), HEAP(prefix "rallocx", RALLOCX, family), \
		HEAP(prefix "dallocx", DALLOCX, family), HEAP(prefix "sdallocx", SDALLOCX, family)

/* C23. */
#define SIZED(prefix, family) \
	HEAP(prefix "free_sized", FREE_SIZED, family), HEAP(prefix "free_aligned_sized", FREE_ALIGNED_SIZED, family)

/* Of the names of one address the first row is the one that is shown. */
static const struct hook_name names[] = {
	COMMON("", C),
	SIZED("", C),

	HEAP("_Znwm", NEW, OPERATOR),
	HEAP("_Znam", NEW, OPERATOR),
	HEAP("_ZnwmRKSt9nothrow_t", NEW, OPERATOR),
	HEAP("_ZnamRKSt9nothrow_t", NEW, OPERATOR),
	HEAP("_ZnwmSt11align_val_t", NEW_ALIGNED, OPERATOR),
	HEAP("_ZnamSt11align_val_t", NEW_ALIGNED, OPERATOR),
	HEAP("_ZnwmSt11align_val_tRKSt9nothrow_t", NEW_ALIGNED, OPERATOR),
	HEAP("_ZnamSt11align_val_tRKSt9nothrow_t", NEW_ALIGNED, OPERATOR),
	HEAP("_ZdlPv", DELETE, OPERATOR),
	HEAP("_ZdaPv", DELETE, OPERATOR),
	HEAP("_ZdlPvRKSt9nothrow_t", DELETE, OPERATOR),
	HEAP("_ZdaPvRKSt9nothrow_t", DELETE, OPERATOR),
	HEAP("_ZdlPvm", DELETE_SIZED, OPERATOR),
	HEAP("_ZdaPvm", DELETE_SIZED, OPERATOR),
	HEAP("_ZdlPvSt11align_val_t", DELETE_ALIGNED, OPERATOR),
	HEAP("_ZdaPvSt11align_val_t", DELETE_ALIGNED, OPERATOR),
	HEAP("_ZdlPvSt11align_val_tRKSt9nothrow_t", DELETE_ALIGNED, OPERATOR),
	HEAP("_ZdaPvSt11align_val_tRKSt9nothrow_t", DELETE_ALIGNED, OPERATOR),
	HEAP("_ZdlPvmSt11align_val_t", DELETE_SIZED_ALIGNED, OPERATOR),
	HEAP("_ZdaPvmSt11align_val_t", DELETE_SIZED_ALIGNED, OPERATOR),

	EXTENDED("", EXTENDED),

	COMMON("je_", JEMALLOC),
	SIZED("je_", JEMALLOC),
	EXTENDED("je_", JEMALLOC),
	COMMON("_rjem_", RUST),
	SIZED("_rjem_", RUST),
	EXTENDED("_rjem_", RUST),

	COMMON("mi_", MIMALLOC),
	HEAP("mi_malloc_small", MALLOC, MIMALLOC),
	HEAP("mi_zalloc", MALLOC, MIMALLOC),
	HEAP("mi_zalloc_small", MALLOC, MIMALLOC),
	HEAP("mi_mallocn", CALLOC, MIMALLOC),
	HEAP("mi_rezalloc", REALLOC, MIMALLOC),
	HEAP("mi_reallocf", REALLOC, MIMALLOC),
	HEAP("mi_reallocn", REALLOCARRAY, MIMALLOC),
	HEAP("mi_recalloc", REALLOCARRAY, MIMALLOC),
	HEAP("mi_free_size", FREE_SIZED, MIMALLOC),
	HEAP("mi_new", NEW, MIMALLOC),
	HEAP("mi_new_nothrow", NEW, MIMALLOC),
	HEAP("mi_new_aligned", NEW_ALIGNED, MIMALLOC),
	HEAP("mi_new_aligned_nothrow", NEW_ALIGNED, MIMALLOC),
	HEAP("mi_malloc_aligned", MALLOC_ALIGNED, MIMALLOC),
	HEAP("mi_zalloc_aligned", MALLOC_ALIGNED, MIMALLOC),
	HEAP("mi_calloc_aligned", CALLOC, MIMALLOC),
	HEAP("mi_realloc_aligned", REALLOC_ALIGNED, MIMALLOC),
	HEAP("mi_rezalloc_aligned", REALLOC_ALIGNED, MIMALLOC),
	HEAP("mi_free_aligned", DELETE_ALIGNED, MIMALLOC),
	HEAP("mi_free_size_aligned", DELETE_SIZED_ALIGNED, MIMALLOC),

	/* Functions of five parameters, such as mi_heap_recalloc_aligned, are not hooked: a stub passes on four. */
	HEAP("mi_heap_new", OBJECT_NEW, MIMALLOC),
	HEAP("mi_heap_new_in_arena", OBJECT_NEW_IN, MIMALLOC),
	HEAP("mi_heap_delete", OBJECT_DELETE, MIMALLOC),
	HEAP("mi_heap_destroy", OBJECT_DESTROY, MIMALLOC),
	HEAP("mi_heap_malloc", OBJECT_MALLOC, MIMALLOC),
	HEAP("mi_heap_zalloc", OBJECT_MALLOC, MIMALLOC),
	HEAP("mi_heap_malloc_small", OBJECT_MALLOC, MIMALLOC),
	HEAP("mi_heap_alloc_new", OBJECT_MALLOC, MIMALLOC),
	HEAP("mi_heap_calloc", OBJECT_CALLOC, MIMALLOC),
	HEAP("mi_heap_mallocn", OBJECT_CALLOC, MIMALLOC),
	HEAP("mi_heap_alloc_new_n", OBJECT_CALLOC, MIMALLOC),
	HEAP("mi_heap_calloc_aligned", OBJECT_CALLOC, MIMALLOC),
	HEAP("mi_heap_malloc_aligned", OBJECT_ALIGNED, MIMALLOC),
	HEAP("mi_heap_zalloc_aligned", OBJECT_ALIGNED, MIMALLOC),
	HEAP("mi_heap_malloc_aligned_at", OBJECT_ALIGNED, MIMALLOC),
	HEAP("mi_heap_zalloc_aligned_at", OBJECT_ALIGNED, MIMALLOC),
	HEAP("mi_heap_realloc", OBJECT_REALLOC, MIMALLOC),
	HEAP("mi_heap_reallocf", OBJECT_REALLOC, MIMALLOC),
	HEAP("mi_heap_rezalloc", OBJECT_REALLOC, MIMALLOC),
	HEAP("mi_heap_reallocn", OBJECT_REALLOCARRAY, MIMALLOC),
	HEAP("mi_heap_recalloc", OBJECT_REALLOCARRAY, MIMALLOC),
	HEAP("mi_heap_realloc_aligned", OBJECT_REALLOC_ALIGNED, MIMALLOC),
	HEAP("mi_heap_rezalloc_aligned", OBJECT_REALLOC_ALIGNED, MIMALLOC),

	COMMON("tc_", TCMALLOC),
	HEAP("tc_malloc_skip_new_handler", MALLOC, TCMALLOC),
	HEAP("tc_free_sized", FREE_SIZED, TCMALLOC),
	HEAP("tc_new", NEW, TCMALLOC),
	HEAP("tc_newarray", NEW, TCMALLOC),
	HEAP("tc_new_nothrow", NEW, TCMALLOC),
	HEAP("tc_newarray_nothrow", NEW, TCMALLOC),
	HEAP("tc_new_aligned", NEW_ALIGNED, TCMALLOC),
	HEAP("tc_newarray_aligned", NEW_ALIGNED, TCMALLOC),
	HEAP("tc_new_aligned_nothrow", NEW_ALIGNED, TCMALLOC),
	HEAP("tc_newarray_aligned_nothrow", NEW_ALIGNED, TCMALLOC),
	HEAP("tc_delete", DELETE, TCMALLOC),
	HEAP("tc_deletearray", DELETE, TCMALLOC),
	HEAP("tc_delete_nothrow", DELETE, TCMALLOC),
	HEAP("tc_deletearray_nothrow", DELETE, TCMALLOC),
	HEAP("tc_delete_sized", DELETE_SIZED, TCMALLOC),
	HEAP("tc_deletearray_sized", DELETE_SIZED, TCMALLOC),
	HEAP("tc_delete_aligned", DELETE_ALIGNED, TCMALLOC),
	HEAP("tc_deletearray_aligned", DELETE_ALIGNED, TCMALLOC),
	HEAP("tc_delete_aligned_nothrow", DELETE_ALIGNED, TCMALLOC),
	HEAP("tc_deletearray_aligned_nothrow", DELETE_ALIGNED, TCMALLOC),
	HEAP("tc_delete_sized_aligned", DELETE_SIZED_ALIGNED, TCMALLOC),
	HEAP("tc_deletearray_sized_aligned", DELETE_SIZED_ALIGNED, TCMALLOC),

	COMMON("__libc_", LIBC),

	HEAP("_PyObject_ArenaMmap", ARENA_ALLOC, PYTHON),
	HEAP("_PyObject_ArenaMunmap", ARENA_FREE, PYTHON),

	SYSTEM("_dl_debug_state", LOADER),
	SYSTEM("execve", EXECVE),
	SYSTEM("__execve", EXECVE),
	SYSTEM("execveat", EXECVEAT),
	SYSTEM("fexecve", FEXECVE),
	SYSTEM("prctl", PRCTL),
	SYSTEM("__prctl", PRCTL),
	SYSTEM("syscall", SYSCALL),
	SYSTEM("__libc_start_main", START),
	SYSTEM("_exit", EXIT),
	SYSTEM("_Exit", EXIT),
	SYSTEM("_dl_find_object", FIND_OBJECT),
	SYSTEM("dl_iterate_phdr", ITERATE_PHDR),
	SYSTEM("__dl_iterate_phdr", ITERATE_PHDR),

	MARK("gnu_get_libc_version", GLIBC),
	MARK("_int_malloc", GLIBC_MALLOC),
	MARK("__libc_malloc_impl", MUSL),
	MARK("__init_libc", MUSL),
	MARK("main_arena", MAIN_ARENA),
	MARK("__malloc_arena_thread_freeres", CACHE_SHUTDOWN),
	MARK("tcache_thread_shutdown", CACHE_SHUTDOWN),
	MARK("_r_debug", DEBUG_STRUCT),
	MARK("_dl_debug_addr", DEBUG_POINTER),
	MARK_OF("mallctl", KNOWN_ALLOCATOR, JEMALLOC),
	MARK_OF("mi_version", KNOWN_ALLOCATOR, MIMALLOC),
	MARK_OF("tc_version", KNOWN_ALLOCATOR, TCMALLOC),
	MARK("TCMalloc_Internal_GetStats", KNOWN_ALLOCATOR),
	MARK_OF("malloc_usable_size", USABLE_SIZE, C),
	MARK_OF("je_malloc_usable_size", USABLE_SIZE, JEMALLOC),
	MARK_OF("_rjem_malloc_usable_size", USABLE_SIZE, RUST),
	MARK_OF("mi_usable_size", USABLE_SIZE, MIMALLOC),
	MARK_OF("mi_malloc_usable_size", USABLE_SIZE, MIMALLOC),
	MARK_OF("tc_malloc_size", USABLE_SIZE, TCMALLOC),
	MARK("_PyEval_EvalFrameDefault", PYTHON_EVAL),
	MARK("_PyEval_EvalFrameDefault.cold", PYTHON_COLD),
	MARK("PyGILState_GetThisThreadState", PYTHON_OWN_STATE),
	MARK("_PyThreadState_GetCurrent", PYTHON_CURRENT_STATE),
	MARK("PyCode_Type", PYTHON_CODE),
	MARK("PyUnicode_Type", PYTHON_TEXT),
	MARK("PyBytes_Type", PYTHON_BYTES),
	MARK("Py_Version", PYTHON_VERSION),
	MARK("PyObject_GetArenaAllocator", PYTHON_ARENAS),
	MARK("_PyRuntime", PYTHON_RUNTIME),
	MARK("PyObject_Malloc", PYTHON_CALLERS + 0),
	MARK("PyObject_Calloc", PYTHON_CALLERS + 1),
	MARK("PyObject_Realloc", PYTHON_CALLERS + 2),
	MARK("PyObject_Free", PYTHON_CALLERS + 3),
	MARK("PyMem_Malloc", PYTHON_CALLERS + 4),
	MARK("PyMem_Calloc", PYTHON_CALLERS + 5),
	MARK("PyMem_Realloc", PYTHON_CALLERS + 6),
	MARK("PyMem_Free", PYTHON_CALLERS + 7),
	MARK("PyCode_NewWithPosOnlyArgs", PYTHON_8),
	MARK("PyObject_GC_IsTracked", PYTHON_9),
	MARK("PyIter_Send", PYTHON_10),
	MARK("_Py_MergeZeroLocalRefcount", PYTHON_OTHER),
	MARK("_Py_PrintReferences", PYTHON_OTHER),
};

#define X(id, name, kind, parameters) {name, FUNCTION_##id, FAMILY_ANNOTATION, 0},
/* Only those from FUNCTION_FIRST_ANNOTATION on are asked for. */
static const struct hook_name annotations[] = {HEAP_FUNCTIONS(X)};
#undef X

enum { NAME_COUNT = sizeof(names) / sizeof(names[0]), BUCKET_COUNT = 512 };

/* Return the bucket of a name. All names have four bytes; these four and a multiplication exclude nearly every other
   symbol. */
static unsigned bucket_of(const char *name)
{
	uint32_t first;
	memcpy(&first, name, sizeof(first));
	return (first * 2654435761u) >> 23;
}

/* Chains of rows by bucket, as indices + 1; made at the first look-up. */
struct name_index {
	uint8_t head[BUCKET_COUNT];
	uint8_t next[NAME_COUNT];
};
_Static_assert(NAME_COUNT < 255 && BUCKET_COUNT == 1u << (32 - 23), "index fits");

static struct name_index made_index;

static void name_index_make(void)
{
	for (unsigned i = NAME_COUNT; i-- > 0;) {
		unsigned bucket = bucket_of(names[i].name);
		made_index.next[i] = made_index.head[bucket];
		made_index.head[bucket] = (uint8_t)(i + 1);
	}
}

static const struct name_index *name_index(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, name_index_make);
	return &made_index;
}

const struct hook_name *hook_name_find(const char *name)
{
	if (!name[0] || !name[1] || !name[2] || !name[3])
		return NULL;
	const struct name_index *index = name_index();
	for (unsigned i = index->head[bucket_of(name)]; i; i = index->next[i - 1])
		if (strcmp(names[i - 1].name, name) == 0)
			return &names[i - 1];
	return NULL;
}

const struct hook_name *hook_annotation_find(uint32_t number)
{
	return number - 1 < FUNCTION_ANNOTATION_COUNT ? &annotations[FUNCTION_FIRST_ANNOTATION + number - 1] : NULL;
}

unsigned hook_name_rank(const struct hook_name *name)
{
	return name->family == FAMILY_ANNOTATION ? (unsigned)NAME_COUNT + name->function : (unsigned)(name - names);
}
