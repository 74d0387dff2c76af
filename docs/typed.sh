#!/bin/sh
# What a reader types, as one script: `sh docs/typed.sh PAGE...` prints it.
#
# Commands stand as they are on the page. The programs of a page are one, which runs where a command follows or the page
# ends. It asks for sh and awk alone, so that a bare Debian can follow docs/start.md and the tutorial from nothing:
#
#   sh docs/typed.sh docs/start.md docs/tutorial/*.md >/tmp/typed && sh -ex /tmp/typed

set -eu

awk '
  function run() {
    if (program != "") {
      name = FILE
      gsub(/.*\/|\.md$/, "", name)
      printf "cat >%s.py <<\"END OF PAGE\"\n%sEND OF PAGE\npython %s.py\n", name, program, name
    }
    asked = 0
  }
  FNR == 1 { if (asked) run(); program = ""; FILE = FILENAME }
  /^```/ && inside == "" { inside = substr($0, 4); if (inside == "") inside = "text"; if (inside == "sh" && asked) run(); next }
  /^```$/ { inside = ""; next }
  inside == "sh" { print }
  inside == "python" { program = program $0 "\n"; asked = 1 }
  END { if (asked) run() }
' "$@"
