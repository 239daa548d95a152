"""The tables of ./ladder bench, from the records that it wrote: python3 -m common.show.bench FILE."""

from common.show import formats, records, text, time_tables
from common.show.support import fail, run_main


def main(words):
    try:
        bench = records.read_bench(words[0])
    except records.BadInput as error:
        fail(str(error))
    for problem in bench.problems:
        print(f"{formats.title_of(problem)}\n")
        print("\n".join(formats.aligned(part) if part.startswith("|") else part
                        for part in text.times(problem, bench)[1:]))
    if len(bench.problems) > 1 and any(problem.competitors for problem in bench.problems):
        print(f"Over {len(bench.problems)} problems: the geometric mean of how many times as fast as the "
              "library\na stage is, and on how many it is faster. TF32 keeps 10 bits of each factor.\n")
        print(formats.aligned(time_tables.standings_table(bench)))
    return 0


if __name__ == "__main__":
    run_main(main)
