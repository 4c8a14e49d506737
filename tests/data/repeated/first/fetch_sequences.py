"""
verdict: none
stack:
  main("accessions.txt")
  download(session, accession)
  session.get(URL, params=query, timeout=60)
why: the request is repeated only after a failure, and each accession occurs once
"""
import time
from pathlib import Path

import requests

URL = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/efetch.fcgi"


def download(client, name, tries=5):
    query = {"db": "nuccore", "id": name, "rettype": "fasta", "retmode": "text"}
    session = client
    for attempt in range(tries):
        try:
            answer = session.get(URL, params=query, timeout=60)
            answer.raise_for_status()
            if answer.text.startswith(">"):
                return answer.text
        except requests.RequestException as error:
            print(name, attempt, error)
        time.sleep(2**attempt)
    return None


def main(listing):
    names = sorted(set(Path(listing).read_text().split()))
    failed = []
    with requests.Session() as session:
        for accession in names:
            text = download(session, accession)
            if text is None:
                failed.append(accession)
                continue
            Path("fasta", accession + ".fa").write_text(text)
    print(len(failed), "failed")


if __name__ == "__main__":
    main("accessions.txt")
