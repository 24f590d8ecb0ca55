"""Every command that takes a model gives one clear line, and no crash, for files that are not one."""
import pathlib
import tempfile

from assay_program import MODEL, expect, require_model, run

COMMANDS = {
    "run": ["--prompt", "x"],
    "inspect": [],
    "quality": [],
    "serve": ["--port", "0"],
}


def main():
    require_model()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "text.gguf").write_text("This is not a model.\n" * 100)
        (folder / "empty.gguf").write_bytes(b"")
        with open(MODEL, "rb") as model:
            head = model.read(4 << 20)
        (folder / "truncated.gguf").write_bytes(head)
        (folder / "folder").mkdir()
        for file in ("text.gguf", "empty.gguf", "truncated.gguf", "folder", "absent.gguf"):
            for command, extra in COMMANDS.items():
                arguments = [command, "--model", file] if command == "serve" else [command, file]
                code, _, err = run(*arguments, *extra, cwd=folder, timeout=60)
                lines = [line for line in err.splitlines() if "error" in line]
                expect(code == 1, f"{command} {file}: exit code 1, not {code}: {err}")
                expect(len(lines) == 1 and file in lines[0], f"{command} {file}: one line that names the file: {err}")
    code, _, err = run("run", str(MODEL), "--prompt", "x", "--weights", "int3")
    expect(code == 1 and "int3" in err, f"unknown format: {code} {err}")
    code, _, err = run("run", str(MODEL), "--prompt", "x", "--isa", "mmx")
    expect(code == 1 and "mmx" in err, f"unknown kernel table: {code} {err}")
    print("bad models: all passed")


if __name__ == "__main__":
    main()
