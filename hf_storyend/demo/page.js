() => {
  // Ctrl+Enter (or Cmd+Enter) generates, wherever the cursor is.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    document.querySelector("#generate").click();
  });
  // Arrow keys move along a choice; Gradio's radio buttons are no group.
  const steps = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
  document.addEventListener("keydown", (event) => {
    if (!(event.key in steps) || event.target.type !== "radio") return;
    event.preventDefault();
    const buttons = [...event.target.closest("fieldset").querySelectorAll("input[type=radio]")];
    const next = buttons.at((buttons.indexOf(event.target) + steps[event.key]) % buttons.length);
    next.focus();
    next.click();
  });
  const copy = async (text) => {
    // Without https there is no clipboard; a selection can be copied everywhere.
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (button) {
      await copy(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    }
    const enlarge = event.target.closest("button.enlarge");
    if (enlarge) {
      const isLarge = enlarge.closest("p").previousElementSibling.classList.toggle("large");
      enlarge.setAttribute("aria-pressed", isLarge);
      enlarge.textContent = isLarge ? "Make it fit" : "Enlarge";
    }
  });
}
