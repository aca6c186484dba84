"""Find the entities of a corpus with Spark; without a cluster, on this machine.

    pip install 'hf_spanner[spark]'     # and Java 17
    python scripts/predict_spark.py corpus.jsonl entities/ --master 'local[2]'
    spark-submit --master yarn scripts/predict_spark.py hdfs:///corpus hdfs:///entities

The corpus is a file or folder of JSON Lines (or, with --format, csv or parquet) with a column `text`; the output is a
folder of parquet files with all columns and `entities`.
"""

import argparse
import os
import sys

from pyspark.sql import SparkSession

from hf_spanner.bulk.spark import entities_udf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("output", help="a folder that does not exist yet")
    parser.add_argument("--format", choices=["json", "csv", "parquet"], default="json", help="of the corpus")
    parser.add_argument("--model", default="default", help="a folder that all machines see, a Hub id, or 'default'")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--master", help="such as local[2]; not with spark-submit, which says it itself")
    args = parser.parse_args()
    if (args.master or "").startswith("local"):  # or the workers run whatever `python3` is
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("hf_spanner")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", 8192)  # texts that are read together
    spark = (builder.master(args.master) if args.master else builder).getOrCreate()
    try:
        texts = spark.read.format(args.format).option("header", True).load(args.corpus)
        texts = texts.repartition(spark.sparkContext.defaultParallelism)  # one file would be one worker's alone
        find = entities_udf(args.model)
        texts.withColumn("entities", find(args.text_column)).write.parquet(args.output)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
