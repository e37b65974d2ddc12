/* SPDX-License-Identifier: MIT */
/* _dl_find_object() for releases of glibc that have none yet (before 2.35), which the compiler's unwinder may ask
   for. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

/* The address comes first, as in the structures of unwinders: by that the recorder knows that it is looked for. */
struct search {
	uintptr_t pc;
	struct dl_find_object *found;
};

/* There when the thread begins: what is asked for here may not call the heap. */
static _Thread_local struct link_map map __attribute__((tls_model("initial-exec")));

static int object_check(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search *search = data;
	const ElfW(Phdr) *around = NULL, *tables = NULL;

	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		if (segment->p_type == PT_GNU_EH_FRAME)
			tables = segment;
		else if (segment->p_type == PT_LOAD &&
			 search->pc - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
			around = segment;
	}
	if (!around || !tables)
		return 0;
	/* No object of the loader's is told so briefly. */
	struct link_map *known = size > offsetof(struct dl_phdr_info, dlpi_adds) ? &map : NULL;
	map.l_addr = object->dlpi_addr;
	map.l_name = (char *)object->dlpi_name;
	*search->found = (struct dl_find_object){.dlfo_map_start = (void *)object->dlpi_addr,
						 .dlfo_link_map = known,
						 .dlfo_eh_frame = (void *)(object->dlpi_addr + tables->p_vaddr)};
	return 1;
}

int _dl_find_object(void *pc, struct dl_find_object *found)
{
	struct search search = {(uintptr_t)pc, found};

	return dl_iterate_phdr(object_check, &search) ? 0 : -1;
}
