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
}
