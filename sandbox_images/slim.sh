#!/usr/bin/env bash
# Takes from the installed libraries what is of no use to a program in a sandbox, a third of what wheels hold; runs while the image
# is built, in the folder site-packages. What programs of models use stays: data sets, sources for tracebacks, cascades of OpenCV.
set -euo pipefail

# Test suites (numpy.testing needs one file of them), headers and sources of extensions, notebook widgets, second copies of libraries,
# pyarrow Flight, which speaks to a network, raw data beside a data set; locales of small languages.
find . -type d \( -name tests -o -name test \) -prune -not -path './numpy/_core/tests' -exec rm -rf {} +
find numpy/_core/tests -mindepth 1 -not -name '_natype.py' -delete
rm -rf numpy/_core/_simd.*.so pyarrow/include pyarrow/*flight* pyarrow/_substrait* pyarrow/libarrow_python*.so pyarrow/libarrow_python*.so.*.*.* \
  plotly/labextension plotly/package_data/widgetbundle.js statsmodels/datasets/randhie/src skimage/data/lfw_subset.npy ../../../share/jupyter ../../../share/man
find . -type f -regextype egrep -regex '.*[.](a|c|cc|cpp|h|hpp|map|pxd|pxi|pyi|pyx)' -not -path './skimage/*' -not -path './lazy_loader/*' -delete
languages='root|ar|bn|cs|da|de|el|en|es|fa|fi|fr|he|hi|hu|id|it|ja|ko|nb|nl|no|pl|pt|ro|ru|sv|th|tr|uk|vi|zh'
find babel/locale-data -type f -regextype egrep -not -regex ".*/($languages)(_[^/]*)?[.]dat" -delete

# Symbols for debuggers. In *.libs lie libraries that auditwheel has moved about: strip may break those, and leaves them alone.
find . -type f -name '*.so*' -not -path './*.libs/*' -exec strip --strip-unneeded {} +

# OpenCV brings an OpenBLAS of its own, 37 MB, and calls 18 functions of it. SciPy's is the same library, whose names begin with
# scipy_: a library of jumps passes the calls on. Only where the assembler's words are known, and the names are those.
blas=$(basename "$(ls opencv_python_headless.libs/libopenblas*.so)")
theirs=$(basename "$(ls scipy.libs/libscipy_openblas-*.so)")
if [ "$(uname -m)" = x86_64 ]; then
  nm -D --undefined-only cv2/cv2.abi3.so | awk '$2 ~ /^(cblas_[a-z]+|[ds][a-z]+_)$/ { print $2 }' |
    awk '{ printf ".globl %s\n.type %s,@function\n%s: jmp *scipy_%s@GOTPCREL(%%rip)\n", $1, $1, $1, $1 }' >/tmp/blas.s
  printf '.section .note.GNU-stack,"",@progbits\n' >>/tmp/blas.s
  as -o /tmp/blas.o /tmp/blas.s
  # Checked here: what scipy's library lacks would be found out by the first program that calls it.
  ld -shared --no-undefined -soname "$blas" -rpath "\$ORIGIN/../scipy.libs" -rpath-link scipy.libs \
    -o /tmp/blas.so /tmp/blas.o "scipy.libs/$theirs" --unresolved-symbols=ignore-in-shared-libs
  mv /tmp/blas.so "opencv_python_headless.libs/$blas"
  rm -f opencv_python_headless.libs/libgfortran* opencv_python_headless.libs/libquadmath* /tmp/blas.*
fi

# The same library twice is one file.
for library in numpy.libs/*; do
  twin=scipy.libs/${library#*/}
  if cmp -s "$library" "$twin"; then ln -sf "../$twin" "$library"; fi
done

# Bytecode is not compared with its source, so it holds whatever the copy into the image does to file times. Generated classes, tables
# and inner workings that no traceback is read for have nothing but their bytecode.
compile() { "$VIRTUAL_ENV/bin/python" -m compileall -q -f -j 0 --invalidation-mode unchecked-hash "$@"; }
compile .
for folder in babel dateparser/data faker/providers fontTools fpdf mpmath narwhals networkx patsy pdfminer plotly/graph_objs pygments pypdf reportlab sqlalchemy; do
  find "$folder" -name __pycache__ -prune -exec rm -rf {} +
  compile -b "$folder"
  find "$folder" -name '*.py' -delete
done

# Ours: see site/.
for module in matplotlib/_mathtext.py matplotlib/_text_helpers.py matplotlib/font_manager.py PIL/ImageFont.py wordcloud/wordcloud.py nltk/downloader.py weasyprint/text/ffi.py; do
  printf '\nimport proofbox_image\n\nproofbox_image.complete(globals())\n' >>"$module"
  compile "$module"
done
chmod -R u=rwX,go=rX "$VIRTUAL_ENV"
