"""installed_documents.py BUILD FOLDER: installs the documents of a build there, and prints the links between them that lead
nowhere, each once."""
import os
import re
import subprocess
import sys


def main(build, folder):
    subprocess.run(["cmake", "--install", build, "--prefix", folder, "--component", "documents"], check=True, stdout=subprocess.DEVNULL)
    root = os.path.join(folder, "share", "doc", "tile")
    links, dangling = 0, set()
    for at, _, names in os.walk(root):
        for name in (n for n in names if n.endswith(".md")):
            with open(os.path.join(at, name), encoding="utf-8") as f:
                text = re.sub(r"^```.*?^```|`[^`\n]*`", "", f.read(), flags=re.M | re.S)
            for link in re.findall(r"\]\(([^)#\s]+)", text):
                path = os.path.join(at, link)
                links += "://" not in link
                if "://" not in link and not os.path.exists(path):
                    dangling.add(os.path.relpath(path, root))
    for path in sorted(dangling):
        print("not installed:", path)
    print(links > 100, len(dangling))


if __name__ == "__main__":
    main(*sys.argv[1:])
