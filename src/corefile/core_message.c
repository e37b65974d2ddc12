/* SPDX-License-Identifier: MIT */
/* glibc keeps the message for debuggers: __abort_msg points to its size and its text. The variable is in the dynamic
   symbols of the library, which lie in the library's file: a core has only what a process has written to. */
#include "corefile/core_message.h"

#include <gelf.h>
#include <string.h>

#include "base/text.h"
#include "corefile/core_file.h"
#include "corefile/corefile.h"

static bool is_library(const char *path)
{
	const char *name = text_file_name(path);
	return !strncmp(name, "libc.so.", strlen("libc.so.")) || !strncmp(name, "libc-", strlen("libc-"));
}

static bool symbol_find(Elf *elf, Elf_Scn *section, const char *name, GElf_Addr *value)
{
	GElf_Shdr head;
	GElf_Sym symbol;
	Elf_Data *data = elf_getdata(section, NULL);
	if (!data || !gelf_getshdr(section, &head))
		return false;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *found = elf_strptr(elf, head.sh_link, symbol.st_name);
		if (symbol.st_shndx != SHN_UNDEF && found && !strcmp(found, name)) {
			*value = symbol.st_value;
			return true;
		}
	}
	return false;
}

/* Find the variable's address in the image's file, where the first segment begins at 0. */
static bool variable_find(Elf *elf, GElf_Addr *value)
{
	GElf_Shdr head;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, &head) && head.sh_type == SHT_DYNSYM &&
		    symbol_find(elf, section, "__abort_msg", value))
			return true;
	return false;
}

static bool text_read(const struct corefile *core, uint64_t variable, char *text, size_t size)
{
	uint64_t place;
	if (corefile_read(core, variable, &place, sizeof(place)) < sizeof(place) || !place)
		return false;
	size_t got = corefile_read(core, place + sizeof(uint32_t), text, size - 1);
	text[got] = 0;
	text[strcspn(text, "\n")] = 0;
	return *text;
}

bool core_message_read(const struct corefile *core, char *text, size_t size)
{
	const struct core_facts *facts = corefile_facts(core);
	bool is_found = false;
	for (size_t i = 0; i < facts->image_count && !is_found; i++) {
		const struct core_image *image = &facts->images[i];
		struct core_file file;
		GElf_Addr variable;
		if (!is_library(image->path) || !core_file_begin(&file, image))
			continue;
		if (variable_find(file.elf, &variable))
			is_found = text_read(core, image->base + variable, text, size);
		core_file_end(&file);
	}
	return is_found;
}
