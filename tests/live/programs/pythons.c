/* SPDX-License-Identifier: MIT */
/*
 * A program with two interpreters of Python, each in a library of its own: pythons LIBRARY PROGRAM LIBRARY PROGRAM
 *
 * Each runs code that takes blocks by take(size), and code of the other one by other(text). They share no names.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

typedef struct object object;
typedef object *function(object *self, object *argument);

enum { METH_O = 8 };

/* struct PyMethodDef */
struct method {
	const char *name;
	function *call;
	int flags;
	const char *text;
};

struct interpreter {
	void *library;
	int (*run)(const char *text);
	const char *(*text_of)(object *text);
	unsigned long (*number_of)(object *number);
	object *(*number)(long number);
};

static struct interpreter interpreters[2];
static int current;

static object *other(object *self, object *argument)
{
	struct interpreter *mine = &interpreters[current];
	const char *text = mine->text_of(argument);
	(void)self;
	current = !current;
	int error = interpreters[current].run(text);
	current = !current;
	return mine->number(error);
}

static object *take(object *self, object *argument)
{
	const struct interpreter *mine = &interpreters[current];
	(void)self;
	void *volatile block = malloc(mine->number_of(argument));
	free(block);
	return mine->number(0);
}

static void *find(const struct interpreter *interpreter, const char *name)
{
	void *found = dlsym(interpreter->library, name);
	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return found;
}

static void begin(struct interpreter *interpreter, const char *path, const char *program)
{
	static struct method methods[] = {{"other", other, METH_O, NULL}, {"take", take, METH_O, NULL}};
	wchar_t *name = calloc(4096, sizeof(*name));
	interpreter->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!interpreter->library || !name) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	mbstowcs(name, program, 4095);
	interpreter->run = (int (*)(const char *))find(interpreter, "PyRun_SimpleString");
	interpreter->text_of = (const char *(*)(object *))find(interpreter, "PyUnicode_AsUTF8");
	interpreter->number_of = (unsigned long (*)(object *))find(interpreter, "PyLong_AsUnsignedLong");
	interpreter->number = (object * (*)(long)) find(interpreter, "PyLong_FromLong");
	((void (*)(const wchar_t *))find(interpreter, "Py_SetProgramName"))(name);
	((void (*)(int))find(interpreter, "Py_InitializeEx"))(0);
	object *module = ((object * (*)(const char *)) find(interpreter, "PyImport_AddModule"))("__main__");
	for (int i = 0; i < 2; i++) {
		object *made = ((object * (*)(struct method *, object *, object *))
					find(interpreter, "PyCFunction_NewEx"))(&methods[i], NULL, NULL);
		((int (*)(object *, const char *, object *))find(interpreter, "PyObject_SetAttrString"))(
			module, methods[i].name, made);
	}
}

/* Each takes blocks of its own sizes, from `size` on: alone, and in code that the other one runs. */
static int work(int which, long size)
{
	char text[1024];
	snprintf(text, sizeof(text),
		 "def leaf(size):\n"
		 "    take(size)\n"
		 "def alone():\n"
		 "    for i in range(100):\n"
		 "        leaf(%ld + i)\n"
		 "def between(text):\n"
		 "    other(text)\n"
		 "alone()\n"
		 "between('leaf(%ld)')\n"
		 "alone()\n",
		 size, size + 100);
	current = which;
	return interpreters[which].run(text);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	for (int i = 0; i < 2; i++)
		begin(&interpreters[i], argv[1 + 2 * i], argv[2 + 2 * i]);
	current = 1;
	interpreters[1].run("def leaf(size):\n    take(size)\n");
	int error = work(0, 1000000) || work(1, 2000000);
	fflush(stdout);
	_Exit(error != 0);
}
