/* SPDX-License-Identifier: MIT */
#include "symbols/kept_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"

const char *kept_symbols_text(const struct kept_symbols *kept, uint32_t text)
{
	return text && text <= kept->text_bytes ? kept->texts + text - 1 : NULL;
}

ptrdiff_t kept_symbols_image(const struct kept_symbols *kept, const char *path, const struct build_id *build_id,
			     uint64_t files)
{
	/* Texts end. */
	bool is_whole = kept->text_bytes && !kept->texts[kept->text_bytes - 1];
	for (size_t i = 0; is_whole && i < kept->image_count; i++) {
		const struct kept_image *image = &kept->images[i];
		const char *own = kept_symbols_text(kept, image->path);
		if ((files ? image->files == files : build_id->size > 0) && image->build_id_size == build_id->size &&
		    !memcmp(image->build_id, build_id->bytes, build_id->size) && own && !strcmp(own, path) &&
		    image->first <= kept->symbol_count && image->count <= kept->symbol_count - image->first)
			return (ptrdiff_t)i;
	}
	return -1;
}

const struct kept_symbol *kept_symbols_find(const struct kept_symbols *kept, ptrdiff_t image, uint64_t address)
{
	if (image < 0)
		return NULL;
	const struct kept_symbol *symbols = &kept->symbols[kept->images[image].first];
	size_t count = kept->images[image].count, at;
	BISECT(at, count, item, symbols[item].address < address);
	if (at == count || symbols[at].address != address)
		return NULL;
	return symbols[at].count && symbols[at].first <= kept->frame_count &&
			       symbols[at].count <= kept->frame_count - symbols[at].first
		       ? &symbols[at]
		       : NULL;
}

void kept_symbols_fini(struct kept_symbols *kept)
{
	free(kept->texts);
	free(kept->images);
	free(kept->symbols);
	free(kept->frames);
	*kept = (struct kept_symbols){.texts = NULL};
}
