# SPDX-License-Identifier: MIT
"$BUILD/tests/golden/make_trace" python python.xht
"$XHEAP" heap python.xht
"$XHEAP" heap python.xht -stacks -lines -allFrames
"$XHEAP" heap python.xht -frames -stacks -requireFrames load -format json
"$XHEAP" heap python.xht -image
"$XHEAP" report python.xht
"$XHEAP" dump python.xht -stacks
"$XHEAP" dump python.xht -stacks -format json
"$XHEAP" dx python.xht '@$cursession.TTD.Data.Heap()[1].Stack[2]'
"$BUILD/tests/golden/make_trace" unknown_python unknown.xht
"$XHEAP" report unknown.xht
# Places of extensions that nothing names belong to the Python function that called them.
"$BUILD/tests/golden/make_trace" python_extensions extensions.xht
"$XHEAP" heap extensions.xht | sed -n '/^Stacks/,$p'
# A function of Python's library belongs to the line of the program that called it; a file of the same name does not.
"$BUILD/tests/golden/make_trace" python_library library.xht
"$XHEAP" report library.xht | sed -n '/^Peak/,/^$/p'
"$XHEAP" heap library.xht | sed -n '/^Stacks/,$p'
"$XHEAP" report library.xht -noDefaultCull | sed -n '/^Peak/,/^$/p'
