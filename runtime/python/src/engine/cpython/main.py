# Starts the warm process. `settings` came with this text and says how scripts are isolated.


def close_others():
    """Whatever the process that started this one had open is no business of scripts."""
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                # The descriptor that the list was read from.
                pass


def main():
    try:
        close_others()
        settings["filter"] = bytes.fromhex(settings["filter"])
        settings["nothing"] = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        warm_up()
        with open("/proc/self/statm") as pages:
            settings["base_bytes"] = int(pages.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        layers, settings["landlock"] = enter_jail() if settings["jail"] else ([], 0)
        if settings["jail"]:
            layers += try_child(settings)
        settings["layers"] = layers
        Zygote(settings, make_functions, run_script).serve()
    except BaseException as error:
        why = str(error) if isinstance(error, JailError) else f"{type(error).__name__}: {error}"
        os.write(0, json.dumps({"refused": why[:1000]}).encode() + b"\n")
        os._exit(3)


main()
